/** Handles namespaced tools. Other protocols have no namespaces, so a tool's namespace becomes a prefix of its name. */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, listOf, text, textOr } from "../conversation/Json.ts"
import { fittingId } from "../conversation/ToolCalls.ts"

/** The maximum length of a tool name at other vendors, in characters. */
const nameLengthMax = 64

const joined = (namespace: string, name: string): string => fittingId(`${namespace}__${name}`, nameLengthMax)

/** Returns the name that other protocols use for the tool in a tool call or tool choice. */
export const nameOf = ({ name, namespace }: JsonObject): unknown =>
  typeof namespace === "string" && typeof name === "string" ? joined(namespace, name) : name

/** Returns a namespace's tools with the names that other protocols use, or `undefined` if `tool` is not a namespace. */
export const toolsIn = (tool: unknown): ReadonlyArray<JsonObject> | undefined => {
  if (!isObject(tool) || tool.type !== "namespace") return undefined
  const namespace = textOr(tool.name, "")
  return listOf(tool.tools).flatMap((one) => (isObject(one) ? [{ ...one, name: nameOf({ ...one, namespace }) }] : []))
}

/** Given the name that other protocols use, returns a tool's name in the client's request, with its namespace if it has one. */
export const originalName = (
  request: JsonObject,
  name: string
): { readonly name: string; readonly namespace?: string } => {
  for (const tool of listOf(request.tools)) {
    if (!isObject(tool) || tool.type !== "namespace" || typeof tool.name !== "string") continue
    for (const one of listOf(tool.tools)) {
      const own = isObject(one) ? text(one.name) : undefined
      if (own !== undefined && joined(tool.name, own) === name) return { name: own, namespace: tool.name }
    }
  }
  return { name }
}

/** Returns the namespaces among a request's tools, reduced to their tools' names, which suffice to find a tool's original name. */
export const namespacesIn = (tools: unknown): ReadonlyArray<JsonObject> =>
  listOf(tools).flatMap((tool) =>
    isObject(tool) && tool.type === "namespace"
      ? [
          {
            type: "namespace",
            name: tool.name,
            tools: listOf(tool.tools).flatMap((one) => (isObject(one) ? [{ name: one.name }] : []))
          }
        ]
      : []
  )

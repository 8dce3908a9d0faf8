/** Handles namespaced tools. Other protocols have no namespaces, so a tool's namespace becomes a prefix of its name. */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, listOf, text, textOr } from "../conversation/Json.ts"
import { fittingId } from "../conversation/ToolCalls.ts"

/** The maximum length of a tool name that other vendors accept, in characters. */
const nameLengthMax = 64

const joined = (namespace: string, name: string): string => fittingId(`${namespace}__${name}`, nameLengthMax)

/** Returns the name that other protocols use for the tool in a tool call or tool choice. */
export const nameOf = ({ name, namespace }: JsonObject): unknown =>
  typeof namespace === "string" && typeof name === "string" ? joined(namespace, name) : name

/** Returns the tools in a namespace with the names that other protocols use, or `undefined` if `tool` is not a namespace. */
export const toolsIn = (tool: unknown): ReadonlyArray<JsonObject> | undefined => {
  if (!isObject(tool) || tool.type !== "namespace") return undefined
  const namespace = textOr(tool.name, "")
  return listOf(tool.tools).flatMap((one) => (isObject(one) ? [{ ...one, name: nameOf({ ...one, namespace }) }] : []))
}

/** Returns a tool's name and namespace in the client's request, given the name that other protocols use. */
export const ownName = (request: JsonObject, name: string): { readonly name: string; readonly namespace?: string } => {
  for (const tool of listOf(request.tools)) {
    if (!isObject(tool) || tool.type !== "namespace" || typeof tool.name !== "string") continue
    for (const one of listOf(tool.tools)) {
      const own = isObject(one) ? text(one.name) : undefined
      if (own !== undefined && joined(tool.name, own) === name) return { name: own, namespace: tool.name }
    }
  }
  return { name }
}

/** Returns the namespaces among a request's tools, with nothing but the names of their tools. `ownName` finds the same names in them. */
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

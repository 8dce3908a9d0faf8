/** Tools in namespaces. Other protocols have no namespaces, so the namespace becomes a prefix of the tool's name. */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, listOf, text, textOr } from "../conversation/Json.ts"
import { fittingId } from "../conversation/ToolCalls.ts"

/** The maximum number of characters in a tool name at other vendors. */
const nameLengthMax = 64

const joined = (namespace: string, name: string): string => fittingId(`${namespace}__${name}`, nameLengthMax)

/** A tool's name for other protocols, from a call or choice. */
export const nameOf = ({ name, namespace }: JsonObject): unknown =>
  typeof namespace === "string" && typeof name === "string" ? joined(namespace, name) : name

/** A namespace's tools with their names for other protocols; `undefined` if `tool` is not a namespace. */
export const toolsIn = (tool: unknown): ReadonlyArray<JsonObject> | undefined => {
  if (!isObject(tool) || tool.type !== "namespace") return undefined
  const namespace = textOr(tool.name, "")
  return listOf(tool.tools).flatMap((one) => (isObject(one) ? [{ ...one, name: nameOf({ ...one, namespace }) }] : []))
}

/** A tool's name and namespace in the client's request, from its name for other protocols. */
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

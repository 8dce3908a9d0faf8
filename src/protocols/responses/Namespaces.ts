/** Tools in namespaces. Other protocols have none, so there a tool's name begins with its namespace. */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, listOf, text, textOr } from "../conversation/Json.ts"
import { fittingId } from "../conversation/ToolCalls.ts"

/** The maximum number of characters of a tool's name for other vendors. */
const nameLengthMax = 64

const joined = (namespace: string, name: string): string => fittingId(`${namespace}__${name}`, nameLengthMax)

/** A tool's name for other protocols, from a call or choice. */
export const nameOf = ({ name, namespace }: JsonObject): unknown =>
  typeof namespace === "string" && typeof name === "string" ? joined(namespace, name) : name

/** The tools of a namespace, with their names for other protocols; `undefined` if the tool is not a namespace. */
export const toolsIn = (tool: unknown): ReadonlyArray<JsonObject> | undefined => {
  if (!isObject(tool) || tool.type !== "namespace") return undefined
  const namespace = textOr(tool.name, "")
  return listOf(tool.tools).flatMap((one) => (isObject(one) ? [{ ...one, name: nameOf({ ...one, namespace }) }] : []))
}

/** A tool's name and namespace in the client's request, by its name for other protocols. */
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

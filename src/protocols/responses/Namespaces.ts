/** Tools in namespaces. Other protocols have none: there the name of a tool begins with its namespace. */
import type { JsonObject } from "../conversation/Conversation.ts"
import { isObject, listOf, text, textOr } from "../conversation/Json.ts"
import { fittingId } from "../conversation/ToolCalls.ts"

/** The name of a tool for other vendors. */
const nameLengthMax = 64

const joined = (namespace: string, name: string): string => fittingId(`${namespace}__${name}`, nameLengthMax)

/** The name, for other protocols, of a tool that a call or a choice names. */
export const nameOf = ({ name, namespace }: JsonObject): unknown =>
  typeof namespace === "string" && typeof name === "string" ? joined(namespace, name) : name

/** The tools of a namespace under their names for other protocols, each with its place in it; `undefined` where this is no namespace. */
export const toolsIn = (tool: unknown): ReadonlyArray<JsonObject> | undefined => {
  if (!isObject(tool) || tool.type !== "namespace") return undefined
  const namespace = textOr(tool.name, "")
  return listOf(tool.tools).flatMap((one) => (isObject(one) ? [{ ...one, name: nameOf({ ...one, namespace }) }] : []))
}

/** The name and the namespace that a client's request has for the tool of this name. */
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

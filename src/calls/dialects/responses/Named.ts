/** Finds the ids of objects that a vendor stores, in requests and responses of the Responses protocol. */
import { inAnyCase } from "../../prompts/Extras.ts"
import type { Named } from "../../prompts/Kept.ts"

type Json = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null

const conversationOf = (conversation: unknown): unknown => (isObject(conversation) ? conversation.id : conversation)

/** An input item's fields that contain ids: the item's id, and the id of the request that it approves. */
const ofItem = new Set(["id", "approval_request_id"])

/**
 * Returns the ids of all objects in a request that the vendor may have stored. Items sent in full are included, because the vendor reads its stored
 * copy.
 */
export const namedIn = ({ conversation, input, previous_response_id }: Json): ReadonlyArray<Named> => {
  const named: Array<Named> = []
  const add = (id: unknown, field: string) => {
    if ((id ?? null) !== null) named.push({ id: String(id), field })
  }
  add(previous_response_id, "previous_response_id")
  add(isObject(conversation) ? (conversation.id ?? "") : conversation, "conversation")
  if (!Array.isArray(input)) return named
  for (const [i, item] of (input as ReadonlyArray<unknown>).entries())
    // Some upstreams ignore the case of names.
    if (isObject(item)) for (const name in item) if (ofItem.has(inAnyCase(name))) add(item[name], `input[${i}].${name}`)
  return named
}

/** Returns the ids in a response, whether complete or partial. */
export const handedOutIn = ({ conversation, id, output }: Json): ReadonlyArray<string> => {
  const items = Array.isArray(output) ? (output as ReadonlyArray<unknown>).filter(isObject) : []
  const ids = [id, conversationOf(conversation), ...items.map((item) => item.id)]
  return ids.filter((one) => typeof one === "string")
}

export const handedOutBy = ({ item, response }: Json): ReadonlyArray<string> => [
  ...(isObject(response) ? handedOutIn(response) : []),
  ...(isObject(item) && typeof item.id === "string" ? [item.id] : [])
]

/**
 * Takes a long prompt apart on the thread for long bodies. The main thread gets the prompt's figures, its short members, and what it must know about
 * the long members. It copies the bytes of the long members to the upstream without reading them.
 */
import { isUtf8 } from "node:buffer"
import { Either } from "effect"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { memberOf, membersIn } from "../../kernel/JsonText.ts"
import { hourIn, mentionsAnHourIn } from "../prompts/CacheHour.ts"
import type { LongFacts, LongMember, ValidPrompt } from "../prompts/Prompt.ts"
import type { Protocol } from "../prompts/Protocol.ts"
import { conversationNameOf } from "./Conversation.ts"
import { isForeign } from "./Translated.ts"

export interface PromptParts extends LongFacts {
  /** The prompt without its body. */
  readonly prompt: Omit<ValidPrompt, "body"> & { readonly body: undefined }
  /** The body's JSON with a short value in place of each long member. */
  readonly body: string
}

type Body = Readonly<Record<string, unknown>>

/** Other members of the body are also long if their JSON is longer than this. */
const memberMax = 64 * 1024

/** The members that the main thread reads or changes. They remain in the body. */
const needed: ReadonlySet<string> = new Set([
  "model",
  "metadata",
  "user",
  "safety_identifier",
  "stream",
  "stream_options",
  "store"
])

/** Validates a prompt and takes it apart. `Left` holds the first broken rule. */
export const partsOf = (protocol: Protocol, value: unknown, json: Buffer): Either.Either<PromptParts, InvalidRequest> =>
  Either.map(protocol.read(value, json), (valid) => {
    const { body } = valid
    const { rest, members } = separated(protocol, body, json)
    const mentions_an_hour = mentionsAnHourIn(json)
    return {
      prompt: { ...valid, body: undefined, json: undefined, long: undefined },
      body: JSON.stringify(rest),
      members,
      asked: askedIn(protocol, body, members),
      foreign: isForeign(protocol.name, { body, json }),
      mentions_an_hour,
      hour_field: mentions_an_hour ? hourIn(body) : undefined,
      conversation: conversationNameOf(body),
      named: protocol.namedIn?.(body) ?? []
    }
  })

/** Separates the long members from the rest of the body. */
const separated = (
  { long_member, repeatsRequest, shortened }: Protocol,
  body: Body,
  json: Buffer
): { readonly rest: Body; readonly members: ReadonlyArray<LongMember> } => {
  const members: Array<LongMember> = []
  const entries = Object.entries(body).map(([name, value]) => {
    if (name === long_member) {
      members.push({ name, ...placeOf(json, name, value) })
      return [name, shortened?.(value) ?? true] as const
    }
    const isKept = repeatsRequest === true || needed.has(name) || isShort(value)
    const text = isKept ? undefined : JSON.stringify(value)
    if (text === undefined || text.length <= memberMax) return [name, value] as const
    members.push({ name, bytes: new TextEncoder().encode(text), from: 0, to: 0 })
    return [name, true] as const
  })
  return { rest: Object.fromEntries(entries), members }
}

/** Returns whether the value is certainly short. */
const isShort = (value: unknown): boolean =>
  typeof value === "string" ? value.length <= memberMax / 8 : typeof value !== "object" || value === null

/**
 * Finds the bytes of the long member in the received JSON. If an upstream might read another value from them, the value is written again (see
 * `prompts/Outgoing`).
 */
const placeOf = (json: Buffer, name: string, value: unknown): Omit<LongMember, "name"> => {
  const found = memberOf(json, name)
  if (found === undefined || found.members !== membersIn(value) || !isUtf8(found.bytes))
    return { bytes: new TextEncoder().encode(JSON.stringify(value)), from: 0, to: 0 }
  const from = found.bytes.byteOffset - json.byteOffset
  return { bytes: undefined, from, to: from + found.bytes.length }
}

/** A longer value is no value in a configuration. */
const valueMax = 1_000

/** Returns what the long members request of the fields that change the vendor's bill, by field. */
const askedIn = ({ billed }: Protocol, body: Body, members: ReadonlyArray<LongMember>): LongFacts["asked"] =>
  new Map(
    members.flatMap(({ name }) => {
      const values = billed.get(name)?.asksFor(body[name])
      if (values === undefined) return []
      const short = values.map((value) => (value.length > valueMax ? `${value.slice(0, valueMax)}...` : value))
      return [[name, [...new Set(short)]] as const]
    })
  )

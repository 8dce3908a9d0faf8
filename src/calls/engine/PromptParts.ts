/**
 * Splits a long prompt on the long-body thread. The main thread gets the prompt's figures, its short members and facts about its long members. It
 * copies the long members' bytes to the upstream without reading them.
 */
import { Either } from "effect"
import type { InvalidRequest } from "../../kernel/InvalidRequest.ts"
import { hourIn, mentionsAnHourIn } from "../prompts/CacheHour.ts"
import type { LongFacts, LongMember, ValidPrompt } from "../prompts/Prompt.ts"
import type { Protocol } from "../prompts/Protocol.ts"
import { separated } from "../prompts/Separated.ts"
import { shortName } from "../metered/TextHash.ts"
import { conversationNameOf } from "./Conversation.ts"
import { isForeign } from "./Translated.ts"

export interface PromptParts extends LongFacts {
  /** The prompt without its body. */
  readonly prompt: Omit<ValidPrompt, "body"> & { readonly body: undefined }
  /** The body's JSON with a short value instead of each long member. */
  readonly body: string
}

type Body = Readonly<Record<string, unknown>>

/** The members that the main thread reads or changes. They remain in the body. */
const needed: ReadonlySet<string> = new Set(["model", "metadata", "stream", "stream_options", "store"])

/** Validates a prompt and splits it. `Left` holds the first violation. */
export const partsOf = (protocol: Protocol, value: unknown, json: Buffer): Either.Either<PromptParts, InvalidRequest> =>
  Either.map(protocol.read(value, json), (valid) => {
    const { body } = valid
    const { rest, members } = separated(body, json, {
      long: protocol.long_member,
      kept: (name) => needed.has(name),
      shortened: (name, value) => shortName(name, value) ?? (protocol.shortened ?? always)(name, value)
    })
    const mentions_an_hour = mentionsAnHourIn(json)
    return {
      prompt: { ...valid, body: undefined, json: undefined, long: undefined },
      body: JSON.stringify(rest),
      members,
      asked: requestedValues(protocol, body, members),
      foreign: isForeign(protocol.name, { body, json }),
      mentions_an_hour,
      hour_field: mentions_an_hour ? hourIn(body) : undefined,
      conversation: conversationNameOf(body),
      named: protocol.namedIn?.(body) ?? []
    }
  })

const always = () => true

/** The maximum length of a requested value, because no configured value is longer. */
const valueMax = 1_000

/** A tool may lack its type, which is then `undefined`. */
const shortValue = (value: string | undefined): string => {
  const text = String(value)
  return text.length > valueMax ? `${text.slice(0, valueMax)}...` : text
}

/** Returns the values that long members request of fields that change the vendor's bill, by field. */
const requestedValues = ({ billed }: Protocol, body: Body, members: ReadonlyArray<LongMember>): LongFacts["asked"] =>
  new Map(
    members.flatMap(({ name }) => {
      const values = billed.get(name)?.asksFor(body[name])
      if (values === undefined) return []
      return [[name, [...new Set(values.map(shortValue))]] as const]
    })
  )

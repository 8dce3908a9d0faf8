/** OpenAI's Responses protocol, as the engine uses it. */
import { promptJson } from "../../prompts/Outgoing.ts"
import { serverSentEvents } from "../../prompts/Protocol.ts"
import type { Passage, Protocol } from "../../prompts/Protocol.ts"
import type { ValidPrompt } from "../../prompts/Prompt.ts"
import { tokensOfString } from "../../prompts/Tokens.ts"
import { InvalidRequest } from "../../../kernel/InvalidRequest.ts"
import { namespacesIn } from "../../../protocols/responses/Namespaces.ts"
import { usageOf } from "../../../protocols/responses/Usage.ts"
import { noUsage } from "../../../protocols/conversation/Usage.ts"
import { messageOf } from "../../../upstream/wire/Failures.ts"
import { billed } from "./Billed.ts"
import { handedOutIn, namedIn } from "./Named.ts"
import { readResponses } from "./Prompt.ts"
import { broken, reader } from "./Relay.ts"

/** Fields that refer to responses stored by the vendor. */
const storedFields = ["previous_response_id", "conversation"] as const

/** Returns whether the input refers to items by the vendor's ids. A reference can omit its type. */
const refers = (input: unknown): boolean =>
  Array.isArray(input) &&
  input.some(
    ({ id, role, type }: { readonly type?: unknown; readonly id?: unknown; readonly role?: unknown }) =>
      type === "item_reference" || ((type ?? null) === null && role === undefined && id !== undefined)
  )

const refusal = ({ body }: ValidPrompt, { upstream }: Passage): InvalidRequest | undefined => {
  if (upstream.keeps_responses) return undefined
  const field = storedFields.find((name) => (body[name] ?? null) !== null) ?? (refers(body.input) ? "input" : undefined)
  return field === undefined
    ? undefined
    : InvalidRequest.of(field, "this model's upstreams store no responses: send the complete conversation in input")
}

/** Shortens a long member. A translated response does not repeat long members, but it needs the tools' namespaces. */
const shortened = (name: string, value: unknown): unknown => {
  switch (name) {
    case "input":
      return refers(value) ? [{ type: "item_reference" }] : []
    case "tools":
      return namespacesIn(value)
    case "previous_response_id":
    case "conversation":
      return true
    default:
      return null
  }
}

export const responses: Protocol = {
  name: "responses",
  endpoint: "responses",
  read: readResponses,
  billed,
  long_member: "input",
  shortened,
  pathFor: () => "/responses",
  headers: {},
  stream: serverSentEvents,
  namedIn,
  handedOutIn,
  long: { names: new Set(["output", "input", "instructions", "tools"]), depth: 1 },
  refusal,
  bodyFor: (prompt, { route: { model }, upstream }, streams, limit) =>
    promptJson(
      prompt,
      {
        ...prompt.body,
        model,
        max_output_tokens: limit,
        stream: streams ? true : undefined,
        store: upstream.keeps_responses ? prompt.body.store : false
      },
      "input"
    ),
  faultIn: (answer) =>
    Array.isArray(answer.output) && (answer.error ?? null) === null && ends.has(answer.status)
      ? undefined
      : `the response contains an error or no output: ${messageOf(answer) ?? "no reason given"}`,
  usageIn: ({ usage }) => usageOf(usage) ?? noUsage,
  countIn: ({ output }) => (output as ReadonlyArray<unknown>).reduce<number>((sum, item) => sum + tokensOf(item), 0),
  broken,
  reader: (_, notes) => reader(notes)
}

/** The `status` values of a complete response. Some vendors omit the field. */
const ends: ReadonlySet<unknown> = new Set(["completed", "incomplete", undefined])

/** Estimates the tokens in an item's text, reasoning and tool call arguments. */
const tokensOf = (item: unknown): number => {
  const { arguments: called, content, input, summary } = (item ?? {}) as Readonly<Record<string, unknown>>
  const texts = [content, summary].flatMap((parts) =>
    Array.isArray(parts) ? parts.map((part: { readonly text?: unknown } | null) => part?.text) : []
  )
  return [called, input, ...texts].reduce<number>(
    (sum, text) => sum + (typeof text === "string" ? tokensOfString(Buffer.byteLength(text)) : 0),
    0
  )
}

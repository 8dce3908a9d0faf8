/**
 * Builds the upstream request body. The long member (such as `messages`) is copied from the received JSON. Serializing it again took a third of a 200
 * kB call's CPU time, and 3 % of an 8 kB call's.
 */
import { isUtf8 } from "node:buffer"
import { memberOf, membersIn } from "../../kernel/JsonText.ts"
import type { ModelRoute } from "./Model.ts"
import type { LongText, ValidPrompt } from "./Prompt.ts"
import type { UpstreamBody } from "./Protocol.ts"

export type EndpointName = "chat/completions" | "completions"

/** Returns an upstream request's JSON. Its `long` member is copied from the original JSON, if possible. Mutates `sent`. */
export const requestJson = (sent: Record<string, unknown>, long: string, json: Buffer | undefined): string | Buffer => {
  const copied =
    json === undefined || json.length < copiedBytesMin ? undefined : unambiguousBytes(json, long, sent[long])
  if (copied === undefined) return JSON.stringify(sent)
  sent[long] = undefined
  const others = JSON.stringify(sent)
  return Buffer.concat([Buffer.from(`${others.slice(0, -1)},"${long}":`), copied, closing])
}

/** Returns the JSON of a prompt's upstream request. Copies all of a long prompt's long members, and otherwise the `long` member if possible. */
export const promptJson = (prompt: ValidPrompt, sent: Record<string, unknown>, long: string): UpstreamBody =>
  prompt.long === undefined ? requestJson(sent, long, prompt.json) : spliced(sent, prompt.long)

/** Serializes the short members and appends the long members' bytes. Mutates `sent`. */
export const spliced = (
  sent: Record<string, unknown>,
  { json, members }: Pick<LongText, "json" | "members">
): ReadonlyArray<Buffer> => {
  for (const { name } of members) sent[name] = undefined
  const pieces: Array<Buffer> = [Buffer.from(JSON.stringify(sent).slice(0, -1))]
  for (const { bytes, from, name, to } of members)
    pieces.push(
      Buffer.from(`,${JSON.stringify(name)}:`),
      bytes === undefined ? json.subarray(from, to) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    )
  pieces.push(closing)
  return pieces
}

/** The minimum length of JSON to copy. Serializing shorter JSON again is just as fast. */
const copiedBytesMin = 2_048

/** Builds the body, with the upstream's name for the model and, if `limit` is set, a single completion limit. */
export const upstreamBodyOf = (
  endpoint: EndpointName,
  streams: boolean,
  route: ModelRoute,
  prompt: ValidPrompt,
  limit: number | undefined
): UpstreamBody =>
  promptJson(
    prompt,
    bodyFor(endpoint, streams, route, prompt, limit),
    endpoint === "completions" ? "prompt" : "messages"
  )

const closing = Buffer.from("}")

const bodyFor = (
  endpoint: EndpointName,
  streams: boolean,
  { limit_field, model }: ModelRoute,
  { body }: ValidPrompt,
  limit: number | undefined
): Record<string, unknown> => {
  const sent: Record<string, unknown> = {
    ...body,
    model,
    max_tokens: undefined,
    max_completion_tokens: undefined
  }
  // Text completions use no other name for the limit.
  if (limit !== undefined) sent[endpoint === "completions" ? "max_tokens" : limit_field] = limit
  if (streams) {
    sent.stream = true
    // The charge needs the usage. The client receives the usage only if it requested it.
    sent.stream_options = { ...(body.stream_options as object | null | undefined), include_usage: true }
  } else if (body.stream === true) {
    sent.stream = undefined
    sent.stream_options = undefined
  }
  return sent
}

/**
 * Returns a member's bytes if every upstream is certain to read the validated and priced value from them. Returns `undefined` if they are not UTF-8,
 * or if an object repeats a name, because some parsers use the first value of such a name and some the last.
 */
const unambiguousBytes = (json: Buffer, name: string, value: unknown): Buffer | undefined => {
  const written = memberOf(json, name)
  return written !== undefined && written.members === membersIn(value) && isUtf8(written.bytes)
    ? written.bytes
    : undefined
}

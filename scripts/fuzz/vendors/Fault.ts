/** Faults in a vendor's response, as serializable data and as changes to a correct response's bytes. */
import fc from "fast-check"
import { gzipSync } from "node:zlib"
import { frame } from "../../../src/sandbox/Bedrock.ts"
import { hostileNumbers, hostileTexts, literals, placesIn } from "../Hostile.ts"

export type Change =
  | { readonly kind: "bytes"; readonly at: number; readonly bytes: ReadonlyArray<number> }
  | { readonly kind: "cut"; readonly at: number; readonly then: "close" | "reset" | "silence" }
  | { readonly kind: "slow"; readonly pieces: number; readonly pause_ms: number }
  | { readonly kind: "length"; readonly value: string }
  | { readonly kind: "chunks"; readonly how: "right" | "bad size" | "no end" | "long extension" | "with length" }
  | { readonly kind: "type"; readonly value: string | undefined }
  | { readonly kind: "status"; readonly status: number; readonly location?: string }
  | { readonly kind: "informational"; readonly status: number; readonly times: number }
  | { readonly kind: "header"; readonly name: string; readonly value: string; readonly times: number }
  | { readonly kind: "coding"; readonly value: "gzip" | "gzip, untrue" | "gzip of zeros" | "br" }
  | { readonly kind: "value"; readonly place: number; readonly event: number; readonly value: string }
  | { readonly kind: "usage"; readonly which: number; readonly event: number; readonly value: string }
  | {
      readonly kind: "events"
      readonly how:
        | "drop"
        | "double"
        | "swap"
        | "early end"
        | "no blank line"
        | "crlf"
        | "comment"
        | "mark"
        | "behind the end"
      readonly at: number
    }
  | { readonly kind: "event"; readonly at: number; readonly data: string }
  | { readonly kind: "body"; readonly text: string }

const share = fc.double({ min: 0, max: 1, noNaN: true })

const values = fc.oneof(
  hostileNumbers.map((value) => JSON.stringify(value)),
  hostileTexts.map((value) => JSON.stringify(value)),
  literals,
  fc.constantFrom("null", "[]", "{}", "true", "[null]", '[{"a":1}]')
)

const counts = fc.constantFrom(
  "-1",
  "-0",
  "1e308",
  "-1e308",
  "1e999",
  '"12"',
  "null",
  "0",
  "0.5",
  "9007199254740993",
  "99999999999999999999",
  "[]",
  "{}",
  "true",
  "NaN",
  '""',
  "2147483648",
  "1"
)

/** Generates one change to a vendor's response. */
export const changes: fc.Arbitrary<Change> = fc.oneof(
  fc.record({
    kind: fc.constant("bytes" as const),
    at: share,
    bytes: fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 3 })
  }),
  fc.record({
    kind: fc.constant("cut" as const),
    at: share,
    then: fc.constantFrom("close" as const, "close" as const, "reset" as const, "silence" as const)
  }),
  fc.record({
    kind: fc.constant("slow" as const),
    pieces: fc.integer({ min: 2, max: 40 }),
    pause_ms: fc.integer({ min: 0, max: 20 })
  }),
  fc.record({
    kind: fc.constant("length" as const),
    value: fc.constantFrom(
      "0",
      "1",
      "+10",
      "-10",
      "-1",
      "99999999999999999999",
      "x",
      "1e3",
      "0x10",
      "5, 5",
      "1048576000"
    )
  }),
  fc.record({
    kind: fc.constant("chunks" as const),
    how: fc.constantFrom(
      "right" as const,
      "bad size" as const,
      "no end" as const,
      "long extension" as const,
      "with length" as const
    )
  }),
  fc.record({
    kind: fc.constant("type" as const),
    value: fc.constantFrom(
      undefined,
      "",
      "text/html",
      "text/plain",
      "application/json",
      "text/event-stream",
      "application/json; charset=utf-16",
      "application/vnd.amazon.eventstream",
      "audio/mpeg",
      "x/y\u00e9"
    )
  }),
  fc.record({
    kind: fc.constant("status" as const),
    status: fc.constantFrom(
      0,
      99,
      101,
      199,
      201,
      202,
      204,
      205,
      206,
      226,
      301,
      302,
      303,
      304,
      307,
      308,
      400,
      401,
      402,
      403,
      404,
      405,
      406,
      408,
      409,
      410,
      413,
      415,
      418,
      422,
      423,
      425,
      429,
      431,
      451,
      499,
      500,
      501,
      502,
      503,
      504,
      508,
      511,
      520,
      529,
      599,
      600,
      999
    ),
    location: fc.constantFrom("/v1/chat/completions", "http://127.0.0.1:1/", "//[::1]", "file:///etc/passwd", "")
  }),
  fc.record({
    kind: fc.constant("informational" as const),
    status: fc.constantFrom(100, 102, 103, 110),
    times: fc.constantFrom(1, 3, 2_000)
  }),
  fc
    .record({
      kind: fc.constant("header" as const),
      name: fc.constantFrom(
        "x-a",
        "set-cookie",
        "retry-after",
        "x-request-id",
        "connection",
        "content-length",
        "transfer-encoding",
        "content-type",
        "trailer",
        "x-charge-usd",
        "x y",
        "keep-alive",
        "location"
      ),
      value: fc.constantFrom(
        "",
        "a",
        "-1",
        "1e9",
        "99999999999",
        "Wed, 21 Oct 2099 07:28:00 GMT",
        "\u00e9\u00ff",
        "a\r\n b",
        "close, keep-alive, x",
        "timeout=0, max=-1",
        "chunked",
        "identity",
        "y".repeat(20_000),
        "y".repeat(10_000_000)
      ),
      times: fc.constantFrom(1, 1, 2, 500)
    })
    .filter(({ times, value }) => value.length * times <= 11_000_000),
  fc.record({
    kind: fc.constant("coding" as const),
    value: fc.constantFrom("gzip" as const, "gzip, untrue" as const, "gzip of zeros" as const, "br" as const)
  }),
  fc.record({ kind: fc.constant("value" as const), place: fc.nat(), event: fc.nat(), value: values }),
  fc.record({ kind: fc.constant("value" as const), place: fc.nat(), event: fc.nat(), value: values }),
  fc.record({ kind: fc.constant("usage" as const), which: fc.nat(), event: fc.nat(), value: counts }),
  fc.record({ kind: fc.constant("usage" as const), which: fc.nat(), event: fc.nat(), value: counts }),
  fc.record({
    kind: fc.constant("events" as const),
    how: fc.constantFrom(
      "drop" as const,
      "double" as const,
      "swap" as const,
      "early end" as const,
      "no blank line" as const,
      "crlf" as const,
      "comment" as const,
      "mark" as const,
      "behind the end" as const
    ),
    at: fc.nat()
  }),
  fc.record({
    kind: fc.constant("event" as const),
    at: fc.nat(),
    data: fc.oneof(
      values,
      fc.constantFrom(
        "[DONE]",
        "{}",
        '{"error":{"message":"secret sk-vendor-key","code":500}}',
        '{"type":"error","error":{"type":"overloaded_error","message":"secret"}}',
        '{"choices":[]}',
        `"${"x".repeat(3_000_000)}"`,
        "\udc00",
        ""
      )
    )
  }),
  fc.record({
    kind: fc.constant("body" as const),
    text: fc.constantFrom(
      "",
      "null",
      "[]",
      '""',
      "{",
      "{}",
      '{"error":null}',
      '{"error":"sk-vendor-key"}',
      '{"error":{"message":{"a":1},"type":7}}',
      "<html>502</html>",
      "\0\0\0",
      "x".repeat(40_000_000),
      `{"a":"${"y".repeat(5_000_000)}"}`,
      `${"[".repeat(50_000)}`,
      "data: [DONE]\n\n"
    )
  })
)

// ---- changed responses ----------------------------------------------------------------------------------------------------------------

export interface Answer {
  readonly status: number
  readonly headers: ReadonlyArray<readonly [string, string]>
  readonly body: Buffer
}

/** The chunks to send, and the action that follows them. */
export interface Delivery {
  readonly pieces: ReadonlyArray<Buffer>
  readonly pause_ms: number
  readonly then: "close" | "reset" | "silence" | "keep"
}

const isFrames = ({ headers }: Answer): boolean =>
  headers.some(([, value]) => value.startsWith("application/vnd.amazon.eventstream"))
const isEvents = ({ headers }: Answer): boolean => headers.some(([, value]) => value.startsWith("text/event-stream"))

const eventsOf = (answer: Answer): ReadonlyArray<Buffer> => {
  const { body } = answer
  if (!isFrames(answer))
    return body
      .toString()
      .split(/(?<=\n\n)/)
      .map((event) => Buffer.from(event))
  const frames: Array<Buffer> = []
  for (let at = 0; at + 4 <= body.length && body.readUInt32BE(at) > 0; at += body.readUInt32BE(at))
    frames.push(body.subarray(at, at + body.readUInt32BE(at)))
  return frames
}

/** Replaces an event's data. */
const eventWith = (answer: Answer, event: Buffer, change: (data: string) => string): Buffer => {
  if (!isFrames(answer))
    return Buffer.from(event.toString().replace(/^data: ?(.*)$/m, (_, data: string) => `data: ${change(data)}`))
  // Another change has already removed the event.
  if (event.length < 16) return event
  const head = event.readUInt32BE(4)
  const type = /:event-type[^A-Za-z]..([A-Za-z]+)/s.exec(event.toString("latin1", 12, 12 + head))?.[1] ?? "messageStart"
  try {
    return Buffer.from(
      frame(type as never, JSON.parse(change(event.toString("utf8", 12 + head, event.length - 4))) as object)
    )
  } catch {
    return event
  }
}

const mark = "\u27e8literal\u27e9"

/** Replaces the value that `which` selects in a JSON string with this literal. */
const withLiteral = (
  text: string,
  place: number,
  literal: string,
  isWanted: (way: ReadonlyArray<string>) => boolean
): string => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return text
  }
  const ways = placesIn(json).filter(isWanted)
  const way = ways[place % ways.length]
  if (way === undefined) return text
  if (way.length === 0) return literal
  let at = json as Record<string, unknown>
  for (const name of way.slice(0, -1)) at = at[name] as Record<string, unknown>
  at[way.at(-1)!] = mark
  try {
    return JSON.stringify(json).replace(JSON.stringify(mark), () => literal)
  } catch {
    // An earlier change nested the value deeper than the stack.
    return text
  }
}

const isCount = (way: ReadonlyArray<string>): boolean =>
  /token|usage|cost|count|second|duration|unit|length|size|search|index/i.test(way.at(-1) ?? "") ||
  way.includes("usage")

const changedValue = (answer: Answer, event: number, change: (data: string) => string): Answer => {
  if (!isEvents(answer) && !isFrames(answer)) return { ...answer, body: Buffer.from(change(answer.body.toString())) }
  const events = [...eventsOf(answer)]
  const at = event % Math.max(1, events.length)
  if (events[at] !== undefined) events[at] = eventWith(answer, events[at], change)
  return { ...answer, body: Buffer.concat(events) }
}

const rearranged = (answer: Answer, how: Extract<Change, { kind: "events" }>["how"], place: number): Answer => {
  const events = [...eventsOf(answer)]
  const at = place % Math.max(1, events.length)
  const text = (change: (all: string) => string): Answer => ({
    ...answer,
    body: Buffer.from(change(answer.body.toString("latin1")), "latin1")
  })
  switch (how) {
    case "drop":
      events.splice(at, 1)
      break
    case "double":
      events.splice(at, 0, events[at] ?? Buffer.alloc(0))
      break
    case "swap":
      events.push(...events.splice(at, 1))
      break
    case "early end":
      events.splice(at)
      break
    case "behind the end":
      events.push(...events.slice(at))
      break
    case "no blank line":
      return text((all) => all.replace(/\n+$/, ""))
    case "crlf":
      return text((all) => all.replaceAll("\n", "\r\n"))
    case "comment":
      return text((all) => `: ${"x".repeat(100)}\n\n${all.replaceAll("\n\n", "\n\n:\n\nid: 1\nretry: 0\n\n")}`)
    case "mark":
      return text((all) => `\xef\xbb\xbf${all}`)
  }
  return { ...answer, body: Buffer.concat(events) }
}

const withHeader = ({ headers, ...answer }: Answer, name: string, value: string | undefined): Answer => ({
  ...answer,
  headers: [...headers.filter(([one]) => one !== name), ...(value === undefined ? [] : [[name, value] as const])]
})

/** Changes the content of a correct response. */
const changedAnswer = (answer: Answer, change: Change): Answer => {
  switch (change.kind) {
    case "value":
      return changedValue(answer, change.event, (data) => withLiteral(data, change.place, change.value, () => true))
    case "usage":
      return changedValue(answer, change.event, (data) => withLiteral(data, change.which, change.value, isCount))
    case "events":
      return rearranged(answer, change.how, change.at)
    case "event":
      return changedValue(answer, change.at, () => change.data)
    case "body":
      return { ...answer, body: Buffer.from(change.text) }
    case "type":
      return withHeader(answer, "content-type", change.value)
    case "status":
      return withHeader({ ...answer, status: change.status }, "location", change.location)
    case "coding": {
      const body =
        change.value === "gzip"
          ? gzipSync(answer.body)
          : change.value === "gzip of zeros"
            ? gzipSync(Buffer.alloc(64 * 1024 * 1024))
            : answer.body
      return withHeader({ ...answer, body }, "content-encoding", change.value === "br" ? "br" : "gzip")
    }
    default:
      return answer
  }
}

const lengthBy = (value: string, length: number): string =>
  /^[+-]\d\d/.test(value) ? String(Math.max(0, length + Number(value))) : value

/** Applies these changes to a response. Returns its bytes and the way to deliver them. */
export const delivered = (right: Answer, all: ReadonlyArray<Change>): Delivery => {
  const answer = all.reduce(changedAnswer, right)
  const of = <K extends Change["kind"]>(kind: K) =>
    all.filter((one): one is Extract<Change, { kind: K }> => one.kind === kind)
  const [length] = of("length")
  const [chunks] = of("chunks")
  const { body } = answer
  const chunk = (bytes: Buffer, extension = "") =>
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}${extension}\r\n`), bytes, Buffer.from("\r\n")])
  const isChunked = chunks !== undefined
  const content = !isChunked
    ? body
    : chunks.how === "bad size"
      ? Buffer.concat([Buffer.from("zz\r\n"), body])
      : Buffer.concat([
          chunk(body, chunks.how === "long extension" ? `;x=${"y".repeat(30_000)}` : ""),
          chunks.how === "no end" ? Buffer.alloc(0) : Buffer.from("0\r\n\r\n")
        ])
  const headers = [
    ...answer.headers.filter(([name]) => name !== "content-length" && name !== "transfer-encoding"),
    ...(isChunked ? [["transfer-encoding", "chunked"]] : []),
    ...(!isChunked || chunks.how === "with length"
      ? [["content-length", length === undefined ? String(body.length) : lengthBy(length.value, body.length)]]
      : []),
    ...of("header").flatMap(({ name, times, value }) => Array.from({ length: times }, () => [name, value]))
  ]
  const informational = of("informational").flatMap(({ status, times }) =>
    Array.from({ length: times }, () => `HTTP/1.1 ${status} Wait\r\nlink: <x>\r\n\r\n`)
  )
  const head = `${informational.join("")}HTTP/1.1 ${answer.status} Fine\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`
  let bytes: Buffer = Buffer.concat([Buffer.from(head), content])
  for (const { at, bytes: others } of of("bytes")) {
    const place = Math.min(bytes.length - 1, Math.floor(at * bytes.length))
    bytes = Buffer.concat([bytes.subarray(0, place), Buffer.from(others), bytes.subarray(place + others.length)])
  }
  const [cut] = of("cut")
  if (cut !== undefined) bytes = bytes.subarray(0, Math.floor(cut.at * bytes.length))
  const [slow] = of("slow")
  const size = Math.max(1, Math.ceil(bytes.length / (slow?.pieces ?? 1)))
  return {
    pieces: Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
      bytes.subarray(index * size, (index + 1) * size)
    ),
    pause_ms: slow?.pause_ms ?? 0,
    then: cut?.then ?? (length === undefined && !isChunked ? "keep" : "close")
  }
}

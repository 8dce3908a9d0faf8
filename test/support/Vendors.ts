/** Calls the sandbox's model vendors directly. Returns their stream events, and builds streams that are cut or broken. */
import { frame } from "../../src/sandbox/Bedrock.ts"
import { all } from "./Protocols.ts"

export const vendorNames = ["chat", "messages", "responses", "google", "bedrock"] as const
export type VendorName = (typeof vendorNames)[number]

/** The path of each vendor in the sandbox. */
export const baseOf = (vendor: VendorName): string =>
  vendor === "google" ? "/google/v1beta" : vendor === "bedrock" ? "/bedrock" : "/chat-a/v1"

/** The vendor's model name. Bedrock's test model has a colon in its name, like real ones. */
export const modelOf = (vendor: VendorName): string =>
  vendor === "bedrock" ? "anthropic.claude-sandbox-v1:0" : `vendor-${vendor}`

const headers = {
  "content-type": "application/json",
  authorization: "Bearer k",
  "x-api-key": "k",
  "x-goog-api-key": "k",
  "anthropic-version": "2023-06-01"
}

const requestOf = (
  vendor: VendorName,
  text: string,
  stream: boolean
): { readonly path: string; readonly body: object } => {
  switch (vendor) {
    case "google":
      return {
        path: `/models/${modelOf(vendor)}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
        body: { contents: [{ role: "user", parts: [{ text }] }] }
      }
    case "bedrock":
      return {
        path: `/model/${encodeURIComponent(modelOf(vendor))}/${stream ? "converse-stream" : "converse"}`,
        body: { messages: [{ role: "user", content: [{ text }] }] }
      }
    default: {
      const { ask, path } = all.find(({ name }) => name === vendor)!
      const more = { model: modelOf(vendor), stream }
      return {
        path: path.replace("/v1", ""),
        body: ask(text, vendor === "chat" && stream ? { ...more, stream_options: { include_usage: true } } : more)
      }
    }
  }
}

const asked = async (origin: string, vendor: VendorName, text: string, stream: boolean): Promise<Buffer> => {
  const { body, path } = requestOf(vendor, text, stream)
  const response = await fetch(origin + baseOf(vendor) + path, { method: "POST", headers, body: JSON.stringify(body) })
  const bytes = Buffer.from(await response.arrayBuffer())
  if (response.status !== 200) throw new Error(`${vendor} answers ${response.status}: ${bytes.toString()}`)
  return bytes
}

/** Returns the JSON of a complete response with this text. */
export const answerOf = async (origin: string, vendor: VendorName, text: string): Promise<string> =>
  (await asked(origin, vendor, text, false)).toString()

/** Returns the events of a stream with this text, as received. */
export const eventsOf = async (origin: string, vendor: VendorName, text: string): Promise<ReadonlyArray<Buffer>> => {
  const bytes = await asked(origin, vendor, text, true)
  if (vendor !== "bedrock")
    return bytes
      .toString()
      .split(/(?<=\n\n|\r\n\r\n)/)
      .map((event) => Buffer.from(event))
  const frames: Array<Buffer> = []
  for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at))
    frames.push(bytes.subarray(at, at + bytes.readUInt32BE(at)))
  return frames
}

/** A sandbox fault that responds with these events. */
export const streamOf = (vendor: VendorName, events: ReadonlyArray<Buffer>, more: object = {}): object => ({
  status: 200,
  headers: { "content-type": vendor === "bedrock" ? "application/vnd.amazon.eventstream" : "text/event-stream" },
  body_base64: Buffer.concat(events).toString("base64"),
  ...more
})

/** A vendor's error inside a stream. */
export const failureOf = (vendor: VendorName): Buffer => {
  switch (vendor) {
    case "bedrock":
      return Buffer.from(frame("modelStreamErrorException", { message: "secret" }))
    case "messages":
      return Buffer.from(
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"secret"}}\n\n'
      )
    case "responses":
      return Buffer.from('event: error\ndata: {"type":"error","code":"x","message":"secret"}\n\n')
    default:
      return Buffer.from('data: {"error":{"message":"secret","code":500,"status":"INTERNAL"}}\n\n')
  }
}

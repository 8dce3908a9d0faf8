/** Protocols that only upstreams speak. The request path names the model and selects streaming. */
import { eventsOf } from "../../upstream/wire/EventFrames.ts"
import { serverSentEvents } from "../prompts/Protocol.ts"
import type { UpstreamProtocol } from "../prompts/Protocol.ts"

/** Gemini. The upstream's address must end with the version or a project's publisher: `https://generativelanguage.googleapis.com/v1beta`. */
export const google: UpstreamProtocol = {
  name: "google",
  pathFor: (model, streams) =>
    `/models/${encodeURIComponent(model)}:${streams ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  headers: {},
  stream: serverSentEvents,
  long: { names: new Set(["candidates"]), depth: 1 }
}

/** Bedrock's Converse. The upstream's address must be a region's runtime: `https://bedrock-runtime.us-east-1.amazonaws.com`. */
export const bedrock: UpstreamProtocol = {
  name: "bedrock",
  pathFor: (model, streams) => `/model/${encodeURIComponent(model)}/${streams ? "converse-stream" : "converse"}`,
  headers: {},
  stream: { content_type: /^application\/vnd\.amazon\.eventstream\b/i, eventsOf },
  long: { names: new Set(["output"]), depth: 1 }
}

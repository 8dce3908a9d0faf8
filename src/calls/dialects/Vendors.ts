/** The protocols that no client speaks, as the engine asks upstreams in them. The model stands in the path, and whether it streams. */
import { eventsOf } from "../../upstream/wire/EventFrames.ts"
import { serverSentEvents } from "../prompts/Protocol.ts"
import type { Spoken } from "../prompts/Protocol.ts"

/** Gemini. The address goes up to the version, or to the publisher of a project: `https://generativelanguage.googleapis.com/v1beta`. */
export const google: Spoken = {
  name: "google",
  pathFor: (model, streams) =>
    `/models/${encodeURIComponent(model)}:${streams ? "streamGenerateContent?alt=sse" : "generateContent"}`,
  headers: {},
  stream: serverSentEvents,
  long: { names: new Set(["candidates"]), depth: 1 }
}

/** Bedrock's Converse. The address is that of the runtime in a region: `https://bedrock-runtime.us-east-1.amazonaws.com`. */
export const bedrock: Spoken = {
  name: "bedrock",
  pathFor: (model, streams) => `/model/${encodeURIComponent(model)}/${streams ? "converse-stream" : "converse"}`,
  headers: {},
  stream: { content_type: /^application\/vnd\.amazon\.eventstream\b/i, eventsOf },
  long: { names: new Set(["output"]), depth: 1 }
}

/** Requests, from each protocol into each other. */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import type { Protocol } from "../../src/protocols/conversation/Conversation.ts"
import { translations } from "../../src/protocols/Protocols.ts"
import type { RequestOptions } from "../../src/protocols/conversation/Translation.ts"
import { requests } from "./wires.ts"

const protocols = Object.keys(translations) as ReadonlyArray<Protocol>
const clients: ReadonlyArray<Protocol> = ["chat", "messages", "responses"]
const options: RequestOptions = {
  model: "m",
  limit: undefined,
  limit_field: "max_completion_tokens",
  stream: false
}

/** The body for a vendor, or the refusal as the client reads it. */
const translated = (client: Protocol, vendor: Protocol, body: unknown, asked: Partial<RequestOptions> = {}): unknown =>
  translations[client].readRequest(body).pipe(
    Either.flatMap((conversation) => translations[vendor].writeRequest(conversation, { ...options, ...asked })),
    Either.match({ onLeft: ({ field, why }) => `${field}: ${why}`, onRight: (body) => body })
  )

describe("each protocol into each", () => {
  for (const { name, wires } of requests)
    for (const client of clients)
      for (const vendor of protocols) {
        const from = wires[client]
        const to = wires[vendor]
        if (typeof from === "string") continue
        it(`${name}: ${client} to ${vendor}`, () => {
          const got = translated(client, vendor, from)
          if (typeof to === "string") expect(got).toContain(to)
          else expect(JSON.parse(JSON.stringify(got))).toEqual(to)
        })
      }
})

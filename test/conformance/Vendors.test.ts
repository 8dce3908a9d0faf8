/** The guide's entries for vendors: each is a configuration, and a request goes where its vendor expects it, with its credential. */
import { generateKeyPairSync } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { IncomingHttpHeaders, Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freePort, freshFolder, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"

interface Received {
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Readonly<Record<string, unknown>>
}

interface Entry {
  readonly base_url: string
  readonly speaks?: ReadonlyArray<string>
}

const guide = readFileSync("src/app/guides/configure.md", "utf8")
const entries = [...guide.matchAll(/```json\n([^`]*)```/g)]
  .map(([, json]) => JSON.parse(json!) as { readonly upstreams?: Readonly<Record<string, Entry>> })
  .find(({ upstreams }) => upstreams !== undefined && "bedrock" in upstreams)!.upstreams!
const names = Object.keys(entries)

let world: Service
let service: Service
let server: Server
let key: string
const received: Array<Received> = []

beforeAll(async () => {
  server = createServer((request, response) => {
    let text = ""
    request.setEncoding("utf8").on("data", (piece: string) => (text += piece))
    request.on("end", () => {
      if (request.url === "/token") return response.end('{"access_token":"VERTEX","expires_in":3600}')
      received.push({ url: request.url!, headers: request.headers, body: JSON.parse(text) as Received["body"] })
      return response.writeHead(503).end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  world = await start()
  const { issuer } = await world.sandbox()
  const file = join(freshFolder(), "tollgate.json")
  writeFileSync(
    file,
    JSON.stringify({
      clients: [{ client_id: "console", name: "Console" }],
      identity: { google: { issuer, audiences: ["sandbox-google"] } },
      registration: { open: true },
      prices: { default_new_credits: 6, default_registration_credits: 0 },
      upstreams: Object.fromEntries(
        Object.entries(entries).map(([name, entry]) => [
          name,
          { ...entry, base_url: entry.base_url.replace(/^https?:\/\/[^/]+/, origin) }
        ])
      ),
      models: names.map((id) => ({
        id,
        context_length: 100_000,
        max_output_tokens: 2_000,
        price: { prompt_usd_per_million: "1", completion_usd_per_million: "2" },
        upstreams: [{ upstream: id, model: "vendor/model:1" }]
      })),
      embeddings: names
        .filter((name) => entries[name]!.speaks?.includes("embeddings") ?? true)
        .map((id) => ({
          id,
          max_input_tokens: 100,
          price: { input_usd_per_million: "1" },
          upstreams: [{ upstream: id }]
        }))
    })
  )
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 })
  const serviceAccount = {
    type: "service_account",
    client_email: "gate@project.iam.example.com",
    private_key_id: "1",
    private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
    token_uri: `${origin}/token`
  }
  const keys = ["OPENAI", "ANTHROPIC", "GEMINI", "AZURE_OPENAI"].map((name) => [`${name}_API_KEY`, name])
  service = await start({
    port: await freePort(),
    args: ["--config", file],
    env: {
      ...Object.fromEntries(keys),
      COMPATIBLE_KEY: "COMPATIBLE",
      GOOGLE_SERVICE_ACCOUNT: JSON.stringify(serviceAccount),
      AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
      AWS_SECRET_ACCESS_KEY: "secret"
    }
  })
  key = await service.key(await service.signIn("vendors@example.com", {}, { client_id: "console", issuer }))
})
afterAll(async () => {
  await Promise.all([service?.discard(), world?.discard()])
  server.closeAllConnections()
  server.close()
})

const messages = [{ role: "user", content: "hi" }]
const sent = async (path: string, body: object): Promise<Received> => {
  received.length = 0
  await service.call(path, { token: key, json: body })
  expect(received).toHaveLength(1)
  return received[0]!
}
const credentialIn = ({ headers }: Received) =>
  Object.fromEntries(
    ["authorization", "x-api-key", "api-key", "x-goog-api-key", "anthropic-version"].flatMap((name) =>
      headers[name] === undefined ? [] : [[name, headers[name]]]
    )
  )

const anthropic = { "x-api-key": "ANTHROPIC", "anthropic-version": "2023-06-01" }
const vertex = "/v1/projects/PROJECT/locations/europe-west1/publishers/google"
const asked: Readonly<Record<string, readonly [whole: string, streamed: string, credential: object]>> = {
  openai: ["/v1/chat/completions", "/v1/chat/completions", { authorization: "Bearer OPENAI" }],
  anthropic: ["/v1/messages", "/v1/messages", anthropic],
  google: [
    "/v1beta/models/vendor%2Fmodel%3A1:generateContent",
    "/v1beta/models/vendor%2Fmodel%3A1:streamGenerateContent?alt=sse",
    { "x-goog-api-key": "GEMINI" }
  ],
  vertex: [
    `${vertex}/models/vendor%2Fmodel%3A1:generateContent`,
    `${vertex}/models/vendor%2Fmodel%3A1:streamGenerateContent?alt=sse`,
    { authorization: "Bearer VERTEX" }
  ],
  azure: ["/openai/v1/chat/completions", "/openai/v1/chat/completions", { "api-key": "AZURE_OPENAI" }],
  "azure-deployment": [
    "/openai/deployments/DEPLOYMENT/chat/completions?api-version=2024-10-21",
    "/openai/deployments/DEPLOYMENT/chat/completions?api-version=2024-10-21",
    { "api-key": "AZURE_OPENAI" }
  ],
  bedrock: [
    "/model/vendor%2Fmodel%3A1/converse",
    "/model/vendor%2Fmodel%3A1/converse-stream",
    { authorization: expect.stringMatching(/^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d+\/eu-central-1\/bedrock\//) }
  ],
  compatible: ["/v1/chat/completions", "/v1/chat/completions", { authorization: "Bearer COMPATIBLE" }]
}

describe("an entry of the guide", () => {
  it("stands there for each vendor", () => {
    expect(names).toEqual(Object.keys(asked))
  })

  it.each(names)("%s", async (model) => {
    const [whole, streamed, credential] = asked[model]!
    const plain = await sent("/v1/chat/completions", { model, messages, max_tokens: 5 })
    expect([plain.url, credentialIn(plain)]).toEqual([whole, credential])
    const stream = await sent("/v1/chat/completions", { model, messages, max_tokens: 5, stream: true })
    expect([stream.url, credentialIn(stream)]).toEqual([streamed, credential])
    expect(plain.body.model).toBe(/google|vertex|bedrock/.test(model) ? undefined : "vendor/model:1")
  })

  it.each(["openai", "azure", "compatible"])("%s, for embeddings", async (model) => {
    const request = await sent("/v1/embeddings", { model, input: "hi" })
    expect(request.url).toMatch(/\/v1\/embeddings$/)
    expect(credentialIn(request)).toEqual(asked[model]![2])
  })
})

describe("an upstream of several protocols", () => {
  it("has the credential of the one in use", async () => {
    const request = await sent("/v1/responses", { model: "openai", input: "hi" })
    expect([request.url, credentialIn(request)]).toEqual(["/v1/responses", { authorization: "Bearer OPENAI" }])
    const message = await sent("/v1/messages", { model: "anthropic", messages, max_tokens: 5 })
    expect([message.url, credentialIn(message)]).toEqual(["/v1/messages", anthropic])
  })
})

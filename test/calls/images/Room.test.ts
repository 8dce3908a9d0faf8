/** Images in the answer itself, of a service with little room: they wait for each other like other long answers. */
import { writeFileSync } from "node:fs"
import { createServer, request } from "node:http"
import type { IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it, vi } from "vitest"
import { freePort, freshFolder, start } from "../../support/Service.ts"
import type { Service } from "../../support/Service.ts"

const image = Buffer.alloc(40_000_000, 7)

let world: Service
let service: Service
let submitted = 0
let fetched = 0
const vendor = createServer(({ url = "" }, response) => {
  if (url.startsWith("/image")) {
    fetched++
    return void response.writeHead(200, { "content-type": "image/png" }).end(image)
  }
  const images = [{ url: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}/image.png` }]
  const answer = url.endsWith("/status")
    ? { status: "COMPLETED" }
    : url.includes("/requests/")
      ? { images }
      : { request_id: `r${++submitted}` }
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer))
})

beforeAll(async () => {
  world = await start()
  await new Promise<void>((resolve) => vendor.listen(0, "127.0.0.1", resolve))
  const { issuer } = await world.sandbox()
  const file = join(freshFolder(), "tollgate.json")
  writeFileSync(
    file,
    JSON.stringify({
      clients: [{ client_id: "console", name: "Console" }],
      identity: { google: { issuer, audiences: ["sandbox-google"] } },
      registration: { open: true },
      prices: { default_new_credits: 6, default_registration_credits: 0 },
      // The least that it may be: two of these answers do not fit into it.
      bodies: { bytes_total: 128 * 1024 * 1024 },
      upstreams: { main: { base_url: `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`, api_key: "k" } },
      tools: { images: [{ id: "painter", upstream: "main", endpoint: "paint", usd_per_image: "0.04" }] }
    })
  )
  service = await start({ port: await freePort(), args: ["--config", file] })
})
afterAll(async () => {
  await Promise.all([service?.discard(), world?.discard()])
  vendor.closeAllConnections()
  vendor.close()
})

/** Asks for an image, and does not read the answer. */
const ask = (key: string): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    request(`${service.url}/v1/images/generations`, { method: "POST", headers }, resolve)
      .once("error", reject)
      .end(JSON.stringify({ prompt: "a lighthouse", response_format: "b64_json" }))
  })

const imageIn = async (response: IncomingMessage): Promise<Buffer> => {
  let text = ""
  for await (const chunk of response) text += String(chunk)
  const [one] = (JSON.parse(text) as { readonly data: ReadonlyArray<{ readonly b64_json: string }> }).data
  return Buffer.from(one!.b64_json, "base64")
}

it("an answer waits while another of its account is not read; a third is refused before the vendor is asked", async () => {
  const { issuer } = await world.sandbox()
  const who = await service.signIn("painter@example.com", {}, { client_id: "console", issuer })
  const key = await service.key(who)
  const first = await ask(key)
  let has_second = false
  const second = ask(key).then((response) => {
    has_second = true
    return response
  })
  await vi.waitFor(() => expect(fetched).toBe(2), 20_000)
  // It has the image's length, and waits for its room.
  await new Promise((resolve) => setTimeout(resolve, 500))
  const refused = await ask(key)
  expect([refused.statusCode, refused.headers["retry-after"], submitted, has_second]).toEqual([503, "5", 2, false])
  refused.resume()
  expect((await imageIn(first)).equals(image)).toBe(true)
  expect((await imageIn(await second)).equals(image)).toBe(true)
  expect(await service.usage(who)).toMatchObject([
    { success: true, cost: 0.04 },
    { success: true, cost: 0.04 }
  ])
})

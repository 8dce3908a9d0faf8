/** A vendor's file as it comes: from where it may come, how much of it, and what becomes of it when somebody goes. */
import { Effect, Either } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { open } from "../../src/upstream/wire/Download.ts"
import { isPublic, mayBePublic } from "../../src/upstream/wire/PublicAddress.ts"

let asked: Array<string> = []
let onClosed: (value?: unknown) => void = () => {}
const vendor = createServer((request, response) => {
  asked.push(request.url!)
  response.once("close", () => onClosed())
  if (request.url === "/moved") return void response.writeHead(302, { location: "/film.mp4" }).end()
  if (request.url === "/packed") return void response.writeHead(200, { "content-encoding": "gzip" }).end("x")
  if (request.url === "/long") return void response.writeHead(200, { "content-length": "5000" }).end("x".repeat(5000))
  if (request.url === "/endless") {
    response.writeHead(200, { "content-type": "video/mp4" })
    const more = () => {
      while (!response.destroyed && response.write("x".repeat(1000)));
      if (!response.destroyed) response.once("drain", more)
    }
    return more()
  }
  response.writeHead(200, { "content-type": "Video/MP4; codecs=x", "content-length": "4" }).end("film")
})

let host: string
beforeAll(async () => {
  await new Promise<void>((resolve) => vendor.listen(0, "127.0.0.1", resolve))
  host = `127.0.0.1:${(vendor.address() as AddressInfo).port}`
})
afterAll(() => {
  vendor.closeAllConnections()
  vendor.close()
})

const read = async (url: string, from = host, limit = 4000) => {
  const found = await Effect.runPromise(Effect.either(open(url, from, limit)))
  if (Either.isLeft(found)) return found.left.reason
  const { body, ...file } = found.right
  let text = ""
  try {
    for await (const chunk of body) text += String(chunk)
    return { ...file, text }
  } catch (error) {
    return (error as Error).message
  }
}

describe("a vendor's file", () => {
  it("comes from where the vendor is asked, or from a data URI", async () => {
    expect(await read(`http://${host}/film.mp4?a=1`)).toEqual({ content_type: "video/mp4", length: 4, text: "film" })
    expect(asked.at(-1)).toBe("/film.mp4?a=1")
    expect(await read("data:image/PNG;base64,YWJj")).toEqual({ content_type: "image/png", length: 3, text: "abc" })
  })

  it("comes from no other address of the own network, by digits or by name, and nobody there is asked", async () => {
    asked = []
    const { port } = vendor.address() as AddressInfo
    for (const name of ["127.0.0.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"]) {
      expect(await read(`http://${name}:${port}/film.mp4`, "vendor.example")).toBe("an address that is not public")
    }
    expect(await read(`http://localhost:${port}/film.mp4`, "vendor.example")).toContain("no public address")
    for (const url of ["file:///etc/passwd", "ftp://vendor.example/x", "film.mp4", ""]) {
      expect(await read(url)).toBe("no address")
    }
    expect(asked).toEqual([])
  })

  it("is not looked for where it has moved, and has its length", async () => {
    expect(await read(`http://${host}/moved`)).toBe("status 302")
    expect(await read(`http://${host}/packed`)).toBe("a file in gzip")
    expect(await read(`http://${host}/long`)).toBe("a file of more than 4000 bytes")
    expect(await read(`http://${host}/endless`)).toBe("the download ended early")
    expect(asked).not.toContain("/film.mp4")
  })

  it("is left by who destroys it", async () => {
    const left = new Promise((resolve) => (onClosed = resolve))
    const { body } = await Effect.runPromise(open(`http://${host}/endless`, host, 1e12))
    await new Promise((resolve) => body.once("readable", resolve))
    body.destroy()
    await left
  })
})

describe("a public address", () => {
  it.each(["93.184.216.34", "2606:4700::1111", "172.32.0.1", "::ffff:8.8.8.8"])("is %s", (address) =>
    expect(isPublic(address)).toBe(true)
  )
  it.each([
    "10.1.2.3",
    "100.64.0.1",
    "169.254.169.254",
    "172.31.255.255",
    "192.168.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "fd00::1",
    "fe80::1",
    "ff02::1",
    "localhost"
  ])("is not %s", (address) => expect(isPublic(address)).toBe(false))
  it("may be behind a name", () => expect(mayBePublic("vendor.example")).toBe(true))
})

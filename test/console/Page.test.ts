/** The console's page over HTTP, of a build that has a small page in it; and what `/` leads to. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { root, start } from "../support/Service.ts"
import type { StartOptions } from "../support/Service.ts"

const index = `<!doctype html><html><head><base href="/console/"><script type="module" src="./assets/main-Ab3dEf12.js"></script></head></html>`
const script = `console.log("${"a page ".repeat(100)}")`

const build = mkdtempSync(join(tmpdir(), "tollgate-build-"))
const files: Readonly<Record<string, string | Buffer>> = {
  "index.html": index,
  "assets/main-Ab3dEf12.js": script,
  "assets/main-Ab3dEf12.js.br": brotliCompressSync(script),
  "assets/main-Ab3dEf12.js.gz": gzipSync(script),
  "favicon.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>"
}

const put = (folder: string, page: typeof files): void => {
  cpSync(join(root, "dist"), join(folder, "dist"), { recursive: true })
  rmSync(join(folder, "dist", "console"), { recursive: true, force: true })
  for (const name of ["node_modules", "package.json"]) symlinkSync(join(root, name), join(folder, name))
  for (const [name, bytes] of Object.entries(page)) {
    mkdirSync(join(folder, "dist", "console", name, ".."), { recursive: true })
    writeFileSync(join(folder, "dist", "console", name), bytes)
  }
}

interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly bytes: Buffer
}

/** A request as it is written: nothing is decoded, and a path is not tidied. */
const get = (url: string, path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Got> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const asked = request({ hostname, port, path, method, headers }, (answer) => {
      const pieces: Array<Buffer> = []
      answer.on("data", (piece: Buffer) => pieces.push(piece))
      answer.on("end", () =>
        resolve({ status: answer.statusCode!, headers: answer.headers, bytes: Buffer.concat(pieces) })
      )
    })
    asked.on("error", reject)
    asked.end()
  })

const withService = async (options: StartOptions, then: (url: string) => Promise<void>): Promise<void> => {
  const service = await start({ build, ...options })
  try {
    await then(service.url)
  } finally {
    await service.discard()
  }
}

const configured = (name: string, configuration: object): ReadonlyArray<string> => {
  const file = join(build, name)
  writeFileSync(file, JSON.stringify(configuration))
  return ["--config", file]
}

beforeAll(() => put(build, files))
afterAll(() => rmSync(build, { recursive: true, force: true }))

describe("the page", () => {
  let url = ""
  let end = async () => {}
  beforeAll(async () => {
    const service = await start({ build })
    url = service.url
    end = () => service.discard()
  })
  afterAll(() => end())

  it("is answered at every path that is no file, and never stored unseen", async () => {
    for (const path of ["/console", "/console/", "/console/usage", "/console/keys/app_1?x=1", "/console/a%2Fb"]) {
      const { bytes, headers, status } = await get(url, path)
      expect([path, status, headers["content-type"]]).toEqual([path, 200, "text/html; charset=utf-8"])
      expect(bytes.toString()).toBe(index)
      expect(headers["cache-control"]).toBe("no-cache")
      const again = await get(url, path, { "if-none-match": String(headers["etag"]) })
      expect([again.status, again.bytes.length]).toEqual([304, 0])
    }
  })

  it("runs no script but its own, in no frame of others, and tells nobody where it was", async () => {
    const { headers } = await get(url, "/console/")
    const policy = String(headers["content-security-policy"])
    expect(policy).toContain("default-src 'self'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("connect-src 'self'")
    expect(policy).not.toContain("unsafe")
    // Nothing of another origin, whatever a vendor or a model names.
    expect(policy).not.toMatch(/https?:|\*/)
    expect(headers).toMatchObject({
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "cross-origin-opener-policy": "same-origin"
    })
  })

  it("has files that are stored for good, compressed as the client takes them", async () => {
    const path = "/console/assets/main-Ab3dEf12.js"
    const plain = await get(url, path)
    expect([plain.status, plain.bytes.toString(), plain.headers["content-encoding"]]).toEqual([200, script, undefined])
    expect(plain.headers["cache-control"]).toContain("immutable")
    expect(plain.headers["vary"]).toBe("Accept-Encoding")
    const br = await get(url, path, { "accept-encoding": "gzip, deflate, br;q=0.9" })
    expect([br.headers["content-encoding"], brotliDecompressSync(br.bytes).toString()]).toEqual(["br", script])
    const gz = await get(url, path, { "accept-encoding": "gzip, br;q=0" })
    expect([gz.headers["content-encoding"], gunzipSync(gz.bytes).toString()]).toEqual(["gzip", script])
    expect(new Set([plain, br, gz].map(({ headers }) => headers["etag"])).size).toBe(3)
    const icon = await get(url, "/console/favicon.svg", { "accept-encoding": "br" })
    expect([icon.headers["content-type"], icon.headers["cache-control"]]).toEqual(["image/svg+xml", "no-cache"])
  })

  it("answers HEAD with the head", async () => {
    const { bytes, headers, status } = await get(url, "/console/favicon.svg", {}, "HEAD")
    expect([status, bytes.length, headers["content-type"]]).toEqual([200, 0, "image/svg+xml"])
  })

  it("has no file of an earlier build, and none outside of it", async () => {
    expect((await get(url, "/console/assets/main-00000000.js")).status).toBe(404)
    for (const path of [
      "/console/../package.json",
      "/console/%2e%2e/package.json",
      "/console/..%2f..%2fpackage.json",
      "/console//etc/passwd",
      "/console/assets/main-Ab3dEf12.js.br/..",
      "/console/index.html",
      "/console/assets/main-Ab3dEf12.js.br"
    ]) {
      const { bytes, status } = await get(url, path)
      expect([path, status === 404 || bytes.toString() === index]).toEqual([path, true])
    }
  })
})

describe("/", () => {
  it("leads a browser to the console, and everyone else to the documents", () =>
    withService({}, async (url) => {
      const browser = await get(url, "/", { accept: "text/html,application/xhtml+xml" })
      expect([browser.status, browser.headers["location"], browser.headers["vary"]]).toEqual([
        303,
        "/console/",
        "Accept"
      ])
      expect((await get(url, "/", { accept: "*/*" })).headers["location"]).toBe("/docs")
      expect((await get(url, "/")).headers["location"]).toBe("/docs")
    }))

  it("leads everyone to the documents where the console is off", () =>
    withService({ args: configured("off.json", { console: { enabled: false } }) }, async (url) => {
      expect((await get(url, "/", { accept: "text/html" })).headers["location"]).toBe("/docs")
      for (const path of ["/console", "/console/", "/console/usage", "/console/assets/main-Ab3dEf12.js"])
        expect([path, (await get(url, path)).status]).toEqual([path, 404])
    }))
})

describe("elsewhere", () => {
  it("beneath a path of another server, the page is told where it is", () =>
    withService({ args: configured("path.json", { public_url: "https://example.com/gate" }) }, async (url) => {
      const { bytes, headers } = await get(url, "/console/usage", { "accept-encoding": "br" })
      expect(headers["content-encoding"]).toBe("br")
      expect(brotliDecompressSync(bytes).toString()).toContain(`<base href="/gate/console/">`)
      expect((await get(url, "/", { accept: "text/html" })).headers["location"]).toBe("/gate/console/")
    }))

  it("where the page was not built, it is said how to", async () => {
    const bare = mkdtempSync(join(tmpdir(), "tollgate-build-"))
    put(bare, {})
    await withService({ build: bare }, async (url) => {
      const { bytes, status } = await get(url, "/console/")
      expect([status, bytes.toString()]).toEqual([503, expect.stringContaining("npm run build")])
    })
    rmSync(bare, { recursive: true, force: true })
  })
})

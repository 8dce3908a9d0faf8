/**
 * The published verifier `tollgate/receipts` in Node, in Chromium and in Deno. It runs there as the package contains it, on receipts of a service
 * with two witnesses. Deno comes from the npm registry on first use.
 */
import { execFile } from "node:child_process"
import { createServer } from "node:http"
import type { Server } from "node:http"
import type { AddressInfo } from "node:net"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import type { ReceiptFile } from "../../src/money/receipts/Verifier.ts"
import { launch } from "../console/Browser.ts"
import { freshFolder, root, start } from "../support/Service.ts"
import type { Service } from "../support/Service.ts"

/** Contains the verifier as `npm run package` writes it to `dist/lib`, and `check.js`. */
let folder: string
let service: Service
let receipt: ReceiptFile

const run = (file: string, args: ReadonlyArray<string>, env?: NodeJS.ProcessEnv): Promise<string> =>
  promisify(execFile)(file, args, { cwd: folder, encoding: "utf8", env: { ...process.env, ...env } }).then(
    ({ stdout }) => stdout,
    (failed: Error & { readonly stdout: string; readonly stderr: string }) => {
      throw new Error(`${failed.message}\n${failed.stdout}${failed.stderr}`, { cause: failed })
    }
  )

/** Compiles the entry of the package, and what it imports. */
const compile = async (): Promise<void> => {
  const config = join(folder, "tsconfig.json")
  const typeRoots = [join(root, "node_modules", "@types")]
  writeFileSync(
    config,
    JSON.stringify({
      extends: join(root, "scripts", "tsconfig.package.json"),
      compilerOptions: { rootDir: join(root, "src"), outDir: folder, declaration: false, typeRoots },
      files: [join(root, "src", "app", "entry", "receipts.ts")],
      include: []
    })
  )
  await run(process.execPath, [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", config])
}

/** A module that verifies the receipt, and one copy of it for each member that is changed. */
const checking = (keys: ReadonlyArray<string>): string => `
import { gaps, read, ReceiptInvalid, verify } from "./app/entry/receipts.js"

const text = ${JSON.stringify(JSON.stringify(receipt))}
const keys = ${JSON.stringify(keys)}
const { cosigned, entry, index, size } = await verify(read(text), keys, { witnesses: 2 })

const refusal = async (changed) => {
  try {
    await verify(changed, keys, { witnesses: 2 })
    return "accepted"
  } catch (error) {
    return error instanceof ReceiptInvalid ? error.message : String(error)
  }
}
const receipt = JSON.parse(text)
const swapped = (text, at) => text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1)
export const found = {
  entry: { ...entry, amount: String(entry.amount), balance: String(entry.balance), giftable: String(entry.giftable) },
  isInside: index < size,
  cosigned: cosigned.map(({ name }) => name).sort(),
  gaps: gaps([{ cosigned, entry }]),
  refused: {
    leaf: await refusal({ ...receipt, leaf: receipt.leaf.replace(/\\namount \\d+\\n/, "\\namount 1\\n") }),
    index: await refusal({ ...receipt, index: index + 1 }),
    proof: await refusal({ ...receipt, proof: swapped(receipt.proof, 5) }),
    root: await refusal({ ...receipt, checkpoint: receipt.checkpoint.replace(/\\n\\d+\\n/, "\\n1\\n") }),
    cosignature: await refusal({ ...receipt, checkpoint: swapped(receipt.checkpoint, receipt.checkpoint.length - 9) }),
    key: await verify(receipt, keys.slice(1)).then(() => "accepted", (error) => error.message)
  }
}
`

beforeAll(async () => {
  folder = freshFolder()
  service = await start({ env: { SANDBOX_WITNESSES: "on" } })
  const ada = await service.signIn("ada@example.com")
  const json = { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], max_tokens: 5 }
  // The tree has more than one leaf, so that there is a proof to change.
  for (let i = 0; i < 3; i++)
    expect((await service.call("/v1/chat/completions", { token: ada.token, json })).status).toBe(200)
  const [usage] = await service.usage(ada)
  const path = `/v1/usage/${usage!.id}/receipt`
  const isIssued = async () => (await service.call(path, { token: ada.token })).status === 200
  await vi.waitUntil(isIssued, { timeout: 60_000, interval: 200 })
  receipt = (await service.call(path, { token: ada.token })).body
  const { keys, witnesses } = (await service.call("/v1/log/keys")).body as {
    readonly keys: ReadonlyArray<string>
    readonly witnesses: ReadonlyArray<{ readonly key: string }>
  }
  await compile()
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }))
  writeFileSync(join(folder, "check.js"), checking([...keys, ...witnesses.map(({ key }) => key)]))
  writeFileSync(join(folder, "print.js"), `import { found } from "./check.js"\nconsole.log(JSON.stringify(found))\n`)
})

afterAll(async () => {
  await service.discard()
  rmSync(folder, { recursive: true, force: true })
})

/** What each platform must find. */
const due = () => {
  const { amount, reference } = /^amount (?<amount>\d+)$[^]*^reference "(?<reference>.*)"$/m.exec(receipt.leaf)!.groups!
  const noRoot = "the entry is not in the log: the proof leads to another root"
  const invalid = expect.stringMatching(/^(?!accepted).*\bsign/)
  return {
    entry: expect.objectContaining({ amount, reference, source: "call", type: "debit" }),
    isInside: true,
    cosigned: ["w1.sandbox", "w2.sandbox"],
    gaps: [],
    refused: {
      leaf: noRoot,
      index: expect.stringMatching(/root|index/),
      proof: noRoot,
      root: invalid,
      cosignature: invalid,
      key: invalid
    }
  }
}

/** Serves the folder's modules. */
const serve = (): Promise<Server> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      const file = join(folder, new URL(request.url!, "http://localhost").pathname)
      if (file.endsWith(".js") && existsSync(file))
        return void response.writeHead(200, { "content-type": "text/javascript" }).end(readFileSync(file))
      response
        .writeHead(file === join(folder, "/") ? 200 : 404, { "content-type": "text/html" })
        .end("<title>check</title>")
    })
    server.listen(0, "127.0.0.1", () => resolve(server))
  })

/** Fetches Deno in another process, because the test runner must not wait for a call that blocks. Returns the path of the program. */
const fetchedDeno = async (): Promise<string> => {
  const packages = pathToFileURL(join(root, "scripts", "packages.ts")).href
  const script = `import { denoPackage, fetched } from ${JSON.stringify(packages)}\nconsole.log(fetched(denoPackage))`
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href
  const printed = await run(process.execPath, ["--import", tsx, "--input-type=module", "-e", script])
  return join(printed.trim().split("\n").at(-1)!, "deno")
}

describe("the verifier of receipts", () => {
  it("runs in Node", async () => {
    expect(JSON.parse(await run(process.execPath, ["print.js"]))).toEqual(due())
  })

  it("runs in Chromium", async () => {
    const server = await serve()
    const browser = await launch()
    try {
      const page = await browser.newPage()
      await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
      expect(await page.evaluate(`import("/check.js").then(({ found }) => found)`)).toEqual(due())
    } finally {
      await browser.close()
      server.close()
    }
  })

  it("runs in Deno, without any permission", async (context) => {
    let deno: string
    try {
      deno = await fetchedDeno()
    } catch (error) {
      // A package that changed is no reason to skip.
      if (String(error).includes("has changed")) throw error
      const why = `DENO IS MISSING, so the verifier is not tested in it: ${String(error)}`
      console.warn(why)
      return context.skip(why)
    }
    const args = ["run", "--no-prompt", "--no-remote", "--no-npm", "print.js"]
    const env = { DENO_DIR: join(folder, "deno"), DENO_NO_UPDATE_CHECK: "1", NO_COLOR: "1" }
    expect(JSON.parse(await run(deno, args, env))).toEqual(due())
  })
})

/** Receipts over HTTP: every charge has one soon, anyone can check it, and the log's files are public. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Tree from "../../src/books/log/Tree.ts"
import { gaps } from "../../src/money/receipts/GapVerifier.ts"
import { ReceiptInvalid, verify } from "../../src/money/receipts/Verifier.ts"
import type { ReceiptFile } from "../../src/money/receipts/Verifier.ts"
import { pathOfTile } from "../../src/money/receipts/TilePath.ts"
import { commandHere } from "../support/CommandLine.ts"
import { start } from "../support/Service.ts"
import type { Answer, Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person
let bob: Person
let keys: ReadonlyArray<string>

const chat = async (token: string): Promise<string> => {
  const json = { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], max_tokens: 5 }
  const answer = await service.call("/v1/chat/completions", { token, json })
  expect(answer.status).toBe(200)
  return answer.headers.get("x-usage-id")!
}

/** The answer once the entry is in the log. */
const receiptAt = async (path: string, token: string): Promise<Answer> => {
  let answer = await service.call(path, { token })
  const status = async () => {
    answer = await service.call(path, { token })
    // The only reason to wait. The log adds entries once a second.
    if (answer.status !== 200) expect(answer.body.code).toBe("not_in_log")
    return answer.status
  }
  await expect.poll(status, { timeout: 20_000 }).toBe(200)
  return answer
}

const entryReceipt = async (who: Person, number: number): Promise<ReceiptFile> =>
  (await receiptAt(`/v1/tenants/${who.tenant_id}/billing/ledger/${number}/receipt`, who.token)).body

const bytesAt = async (path: string): Promise<{ readonly response: Response; readonly bytes: Buffer }> => {
  const response = await fetch(`${service.url}${path}`)
  return { response, bytes: Buffer.from(await response.arrayBuffer()) }
}

beforeAll(async () => {
  service = await start()
  ada = await service.signIn("ada@example.com")
  bob = await service.signIn("bob@example.com")
  keys = (await service.call("/v1/log/keys")).body.keys
  if (keys.length === 0) {
    await expect.poll(async () => (keys = (await service.call("/v1/log/keys")).body.keys).length).toBe(1)
  }
})
afterAll(() => service.discard())

describe("the keys of the log", () => {
  it("come with no witnesses, if none are configured", async () => {
    expect((await service.call("/v1/log/keys")).body).toEqual({ keys, witnesses: [] })
  })
})

describe("a receipt", () => {
  it("proves a charge to anyone who trusts the key", async () => {
    const usage_id = await chat(ada.token)
    const { body } = await receiptAt(`/v1/usage/${usage_id}/receipt`, ada.token)
    const { entry, index, origin, signers, size } = await verify(body, keys)
    expect(entry).toMatchObject({ type: "debit", source: "call", reference: usage_id, amount: expect.any(BigInt) })
    expect(entry.vendor_requests).toMatch(/^req-/)
    expect(index).toBeLessThan(size)
    expect(signers).toEqual([origin])
    const [shown] = (await service.call(`/v1/tenants/${ada.tenant_id}/billing/ledger`, { token: ada.token })).body
      .result.records
    expect([shown.reference_id, shown.billing_account_id]).toEqual([usage_id, entry.account])
    expect(await entryReceipt(ada, entry.number)).toMatchObject({ leaf: body.leaf, index })
  })

  it("is refused with any single character changed", async () => {
    const receipt = await entryReceipt(ada, 1)
    const [other] = (await commandKeys()) as [string]
    await expect(verify(receipt, [other])).rejects.toThrow(ReceiptInvalid)
    for (const field of ["leaf", "proof", "checkpoint"] as const) {
      for (let at = 0; at < receipt[field].length; at++) {
        const text = receipt[field]
        const changed = text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1)
        await expect(verify({ ...receipt, [field]: changed }, keys)).rejects.toThrow(ReceiptInvalid)
      }
    }
    for (const index of [-1, 0.5, receipt.index + 1, receipt.index ^ 2]) {
      await expect(verify({ ...receipt, index }, keys)).rejects.toThrow(ReceiptInvalid)
    }
  })

  it("has a number, so a missing one is noticed", async () => {
    for (let i = 0; i < 3; i++) await chat(ada.token)
    const receipts = []
    for (const number of [1, 2, 3, 4]) receipts.push(await verify(await entryReceipt(ada, number), keys))
    expect(gaps(receipts)).toEqual([])
    expect(gaps(receipts.filter(({ entry }) => entry.number !== 2 && entry.number !== 3))).toEqual([
      `${receipts[0]!.entry.account}: no receipt for the entries 2 to 3`
    ])
  })

  it("goes to the payer alone", async () => {
    const usage_id = await chat(ada.token)
    const path = `/v1/usage/${usage_id}/receipt`
    await receiptAt(path, ada.token)
    expect((await service.call(path, { token: bob.token })).body.code).toBe("usage_not_found")
    expect((await service.call(path)).status).toBe(401)
    expect((await service.call("/v1/usage/use_x/receipt", { token: ada.token })).body.code).toBe("usage_not_found")
    const ledger = `/v1/tenants/${ada.tenant_id}/billing/ledger`
    expect((await service.call(`${ledger}/1/receipt`, { token: bob.token })).status).toBe(403)
    for (const number of ["0", "-1", "x", "1e3", "99999"]) {
      expect((await service.call(`${ledger}/${number}/receipt`, { token: ada.token })).body.code).toBe(
        "entry_not_found"
      )
    }
  })

  it("has at most 2 kB", async () => {
    const { body } = await receiptAt(`/v1/usage/${await chat(ada.token)}/receipt`, ada.token)
    // At a billion entries a proof has 30 hashes.
    const proof = Buffer.alloc(30 * 32, 7).toString("base64")
    const checkpoint = body.checkpoint.replace(/\n\d+\n/, "\n1000000000\n")
    const text = JSON.stringify({ ...body, index: 999_999_999, proof, checkpoint })
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2_048)
  })
})

/** The verifier key of another log. */
const commandKeys = async (): Promise<ReadonlyArray<string>> => [
  "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
]

describe("tollgate receipt verify", () => {
  it("checks files, and says what is wrong", async () => {
    const folder = mkdtempSync(join(tmpdir(), "receipts-"))
    const file = (name: string, content: unknown): string => {
      writeFileSync(join(folder, name), typeof content === "string" ? content : JSON.stringify(content))
      return join(folder, name)
    }
    try {
      const receipts = [await entryReceipt(ada, 1), await entryReceipt(ada, 2), await entryReceipt(ada, 3)]
      const files = receipts.map((receipt, i) => file(`${i}.json`, receipt))
      const key = ["--key", keys[0]!]
      const good = await commandHere(["receipt", "verify", ...key, ...files])
      expect([good.code, good.stderr]).toEqual([0, ""])
      expect(good.stdout.trim().split("\n")).toHaveLength(3)
      expect(good.stdout).toContain("is in the log")
      const missing = await commandHere(["receipt", "verify", ...key, files[0]!, files[2]!])
      expect(missing.code).toBe(1)
      expect(missing.stdout).toContain("no receipt for the entries 2 to 2")
      const forged = file("forged.json", { ...receipts[0], leaf: receipts[0]!.leaf.replace("\namount ", "\namount 1") })
      const wrong = await commandHere([
        "receipt",
        "verify",
        ...key,
        "--json",
        forged,
        file("x.json", "no JSON"),
        "absent"
      ])
      expect(wrong.code).toBe(1)
      expect(JSON.parse(wrong.stdout).receipts.map(({ problem }: { problem: string }) => problem)).toEqual([
        "the entry is not in the log: the proof leads to another root",
        "it is not a JSON document",
        expect.stringContaining("could not be read")
      ])
      const unsigned = await commandHere(["receipt", "verify", "--key", (await commandKeys())[0]!, files[0]!])
      expect(unsigned.stdout).toContain("not signed by a key of its log that you trust")
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("the files of the log", () => {
  it("are public: the checkpoint's root follows from the tiles", async () => {
    await entryReceipt(ada, 1)
    const { bytes, response } = await bytesAt("/checkpoint")
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8")
    expect(response.headers.get("cache-control")).toBe("public, max-age=1")
    const [, count, root] = bytes.toString("utf8").split("\n")
    const size = Number(count)
    const tiles = []
    for (let level = 0; level < Tree.levelsOf(size); level++) {
      const width = Tree.edgeWidth(size, level)
      const path = pathOfTile({ level, n: Math.floor(size / Tree.spanOf(level)), width })
      const tile = await bytesAt(`/tile/${path}`)
      expect([tile.response.status, tile.bytes.length]).toEqual([200, 32 * width])
      expect(tile.response.headers.get("content-type")).toBe("application/octet-stream")
      expect(tile.response.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
      tiles.push(tile.bytes)
    }
    expect(Tree.rootOf({ size, tiles }).toString("base64")).toBe(root)
  })

  it("are only those of the specification", async () => {
    for (const path of [
      "0/000",
      "0/000.p/0",
      "0/000.p/256",
      "00/000.p/1",
      "0/0.p/1",
      "0/x000/000.p/1",
      "entries/000.p/1",
      "64/000.p/1",
      "x"
    ]) {
      const { bytes, response } = await bytesAt(`/tile/${path}`)
      expect([path, response.status, JSON.parse(bytes.toString()).code]).toEqual([path, 404, "not_found"])
    }
    expect((await bytesAt("/tile/0/000.p/1")).bytes).toHaveLength(32)
  })
})

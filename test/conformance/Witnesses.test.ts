/** A service whose log has two witnesses, and its proofs of liabilities, over HTTP and on the command line. */
import { createHash } from "node:crypto"
import { once } from "node:events"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { get } from "node:http"
import type { IncomingMessage } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync, gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import * as Note from "../../src/books/log/Note.ts"
import { nameMax } from "../../src/books/log/Settings.ts"
import { contradictions, verifyLiability, verifyTotal } from "../../src/money/receipts/LiabilityVerifier.ts"
import { ReceiptInvalid, verify } from "../../src/money/receipts/Verifier.ts"
import type { ReceiptFile } from "../../src/money/receipts/Verifier.ts"
import { commandHere } from "../support/CommandLine.ts"
import { start } from "../support/Service.ts"
import type { Person, Service } from "../support/Service.ts"

let service: Service
let ada: Person
let logKeys: ReadonlyArray<string>
let witnesses: ReadonlyArray<{ readonly name: string; readonly key: string; readonly logs: ReadonlyArray<object> }>

const day = 86_400_000

beforeAll(async () => {
  service = await start({ env: { SANDBOX_WITNESSES: "on" } })
  ada = await service.signIn("ada@example.com")
  await vi.waitUntil(async () => (logKeys = (await service.call("/v1/log/keys")).body.keys).length === 1, 10_000)
  witnesses = (await service.control("/witnesses")).witnesses
})
afterAll(() => service.discard())

const chat = async (): Promise<string> => {
  const json = { model: "sandbox-small", messages: [{ role: "user", content: "hello there" }], max_tokens: 5 }
  const answer = await service.call("/v1/chat/completions", { token: ada.token, json })
  expect(answer.status).toBe(200)
  return answer.headers.get("x-usage-id")!
}

const receiptOf = async (usage_id: string): Promise<ReceiptFile> => {
  let answer = await service.call(`/v1/usage/${usage_id}/receipt`, { token: ada.token })
  await expect
    .poll(async () => (answer = await service.call(`/v1/usage/${usage_id}/receipt`, { token: ada.token })).status, {
      timeout: 15_000
    })
    .toBe(200)
  return answer.body
}

const trusted = () => [...logKeys, ...witnesses.map(({ key }) => key)]

/** The response as it is sent. `fetch` would ask for compression by itself. */
const bytesAt = async (path: string, headers: Record<string, string>) => {
  const [response] = (await once(
    get(`${service.url}${path}`, { headers: { ...headers, authorization: `Bearer ${ada.token}` } }),
    "response"
  )) as [IncomingMessage]
  const bytes = Buffer.concat(await response.toArray())
  expect(response.statusCode).toBe(200)
  return { headers: response.headers, bytes }
}

/** Bytes that no compression shortens, the same in each run. */
const noise = (length: number, seed: string): Buffer =>
  createHash("shake256", { outputLength: length }).update(seed).digest()

/** A name of this length, of the characters of addresses. */
const nameOf = (length: number, seed: string): string =>
  [...noise(length, seed)].map((byte) => "0123456789abcdefghijklmnopqrstuvwxyz.-/:"[byte % 40]).join("")

/** The receipt with every part as long as it can be at a billion entries: three witnesses, and names of 48 characters. */
const atWorst = (receipt: ReceiptFile, seed: number): ReceiptFile => {
  const name = (of: string) => nameOf(nameMax, `${of} ${seed}`)
  const digits = (of: string) => String(noise(8, `${of} ${seed}`).readBigUInt64BE() % 10n ** 18n).padEnd(18, "9")
  const [, , root] = receipt.checkpoint.split("\n")
  const line = (signer: string, length: number) =>
    `\u2014 ${signer} ${noise(length, `${signer} ${seed}`).toString("base64")}\n`
  return {
    leaf: receipt.leaf
      .replace(/^number .*$/m, "number 1000000000")
      .replace(/^(amount|balance|giftable) .*$/gm, (_, field: string) => `${field} ${digits(field)}`)
      .replace(/^description .*$/m, `description "/v1/chat/completions ${name("model")}"`),
    index: 999_999_999,
    // At a billion entries a proof has 30 hashes.
    proof: noise(30 * 32, `proof ${seed}`).toString("base64"),
    checkpoint: `${name("log")}\n1000000000\n${root}\n\n${line(name("log"), 68)}${["a", "b", "c"].map((of) => line(name(of), 76)).join("")}`
  }
}

describe("the keys of the log", () => {
  it("come with those of the witnesses, in the format of C2SP", async () => {
    const { body } = await service.call("/v1/log/keys")
    expect(body.keys).toEqual(logKeys)
    expect(body.witnesses).toEqual(witnesses.map(({ key, name }) => ({ name, key })))
    for (const { key, name } of body.witnesses) expect(Note.cosignerOf(key)).toMatchObject({ name })
  })
})

describe("a receipt of a log with two witnesses", () => {
  it("is cosigned by both, like the checkpoint", async () => {
    const receipt = await receiptOf(await chat())
    const { cosigned, signers } = await verify(receipt, trusted(), { witnesses: 2 })
    expect(cosigned.map(({ name }) => name).toSorted()).toEqual(["w1.sandbox", "w2.sandbox"])
    expect(signers).toHaveLength(3)
    const checkpoint = await (await fetch(`${service.url}/checkpoint`)).text()
    expect(checkpoint.split("\n").filter((line) => line.startsWith("— "))).toHaveLength(3)
    const states = (await service.control("/witnesses")).witnesses
    for (const { logs } of states) expect(logs).toMatchObject([{ origin: checkpoint.split("\n")[0] }])
    const { body } = await service.call("/metrics")
    for (const name of ["w1.sandbox", "w2.sandbox"])
      expect(body).toContain(`tollgate_log_witness_conflict{witness="${name}"} 0`)
  })

  it("does not count a witness twice, nor one that is not trusted, nor a cosignature with a changed byte", async () => {
    const receipt = await receiptOf(await chat())
    const [one] = witnesses
    await expect(verify(receipt, [...logKeys, one!.key, one!.key], { witnesses: 2 })).rejects.toThrow(
      "1 witnesses cosigned the checkpoint, but 2 must"
    )
    const lines = receipt.checkpoint.split("\n")
    const at = lines.findIndex((line) => line.startsWith("— w1.sandbox"))
    for (const i of [18, 20, 40, 90]) {
      const changed = lines.map((line, n) =>
        n === at ? line.slice(0, i) + (line[i] === "A" ? "B" : "A") + line.slice(i + 1) : line
      )
      await expect(verify({ ...receipt, checkpoint: changed.join("\n") }, trusted(), { witnesses: 2 })).rejects.toThrow(
        ReceiptInvalid
      )
    }
    const without = { ...receipt, checkpoint: lines.filter((_, n) => n !== at).join("\n") }
    await expect(verify(without, trusted(), { witnesses: 2 })).rejects.toThrow("1 witnesses cosigned")
  })

  it("has at most 2 kB at a billion charges with three witnesses and long names, as it is sent and stored", async () => {
    const receipt = await receiptOf(await chat())
    for (let i = 0; i < 50; i++) {
      const text = JSON.stringify(atWorst(receipt, i))
      expect(gzipSync(text).length).toBeLessThanOrEqual(2_048)
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2_800)
    }
  })

  it("is compressed for a client that accepts gzip, and stays what it was", async () => {
    const usage_id = await chat()
    const receipt = await receiptOf(usage_id)
    const path = `/v1/usage/${usage_id}/receipt`
    const compressed = await bytesAt(path, { "accept-encoding": "gzip, deflate" })
    expect(compressed.headers).toMatchObject({
      "content-type": "application/json",
      "content-encoding": "gzip",
      vary: expect.stringContaining("Accept-Encoding")
    })
    expect(JSON.parse(gunzipSync(compressed.bytes).toString("utf8"))).toMatchObject({ leaf: receipt.leaf })
    const number = /^number (\d+)$/m.exec(receipt.leaf)![1]
    for (const other of [path, `/v1/tenants/${ada.tenant_id}/billing/ledger/${number}/receipt`])
      for (const encoding of [undefined, "identity", "gzip;q=0"]) {
        const plain = await bytesAt(other, encoding === undefined ? {} : { "accept-encoding": encoding })
        expect(plain.headers["content-encoding"]).toBeUndefined()
        expect(JSON.parse(plain.bytes.toString("utf8"))).toMatchObject({ leaf: receipt.leaf })
      }
    const file = join(service.folder, "receipt.json.gz")
    writeFileSync(file, compressed.bytes)
    const keys = trusted().flatMap((key) => ["--key", key])
    expect((await commandHere(["receipt", "verify", ...keys, "--witnesses", "2", file])).code).toBe(0)
    // A bomb is no receipt.
    writeFileSync(file, gzipSync(Buffer.alloc(2 * 1024 * 1024)))
    const refused = await commandHere(["receipt", "verify", ...keys, file])
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining("the file could not be read")])
  })

  it("is checked on the command line", async () => {
    const folder = mkdtempSync(join(tmpdir(), "witnesses-"))
    try {
      const file = join(folder, "receipt.json")
      writeFileSync(file, JSON.stringify(await receiptOf(await chat())))
      const keys = trusted().flatMap((key) => ["--key", key])
      const good = await commandHere(["receipt", "verify", ...keys, "--witnesses", "2", file])
      expect([good.code, good.stderr]).toEqual([0, ""])
      expect(good.stdout).toMatch(/cosigned by w\d\.sandbox at 20\S+Z, w\d\.sandbox at 20\S+Z/)
      const three = await commandHere(["receipt", "verify", ...keys, "--witnesses", "3", file])
      expect([three.code, three.stdout]).toEqual([1, expect.stringContaining("2 witnesses cosigned the checkpoint")])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

describe("the proof of liabilities", () => {
  it("is public, and proves each customer's balance at the end of a day", async () => {
    const bob = await service.signIn("bob@example.com")
    const path = (who: Person) => `/v1/tenants/${who.tenant_id}/billing/liabilities`
    const receipt = await verify(await receiptOf(await chat()), trusted())
    const today = new Date((await service.control("/clock", { advance_ms: 0 })).now).toISOString().slice(0, 10)
    const { now } = await service.control("/clock", { advance_ms: day + 60_000 })
    expect(now.slice(0, 10) > today).toBe(true)
    await expect
      .poll(async () => (await service.call(`/v1/log/liabilities?day=${today}`)).status, { timeout: 30_000 })
      .toBe(200)
    // The token of yesterday has expired.
    ada = await service.signIn("ada@example.com")
    const stated = (await service.call(`/v1/log/liabilities?day=${today}`)).body
    const total = await verifyTotal(stated.statement, logKeys)
    expect(total.day).toBe(today)
    expect(total.accounts).toBeGreaterThanOrEqual(2)
    const { body } = await service.call(`${path(ada)}?day=${today}`, { token: ada.token })
    const liability = await verifyLiability(body, logKeys)
    expect(liability).toMatchObject({ account: receipt.entry.account, balance: receipt.entry.balance, ...total })
    expect(total.total).toBeGreaterThan(liability.balance)
    expect(contradictions([receipt], [liability])).toEqual([])
    expect(contradictions([receipt], [{ ...liability, balance: 1n }])).toHaveLength(1)
    expect(contradictions([receipt], [{ ...liability, entries: 1 }])).toHaveLength(1)
    for (const field of ["leaf", "proof", "statement"] as const) {
      for (let at = 0; at < body[field].length; at++) {
        const text = body[field]
        const changed = text.slice(0, at) + (text[at] === "7" ? "8" : "7") + text.slice(at + 1)
        await expect(verifyLiability({ ...body, [field]: changed }, logKeys)).rejects.toThrow(ReceiptInvalid)
      }
    }
    await expect(verifyLiability({ ...body, index: body.index + 1 }, logKeys)).rejects.toThrow(ReceiptInvalid)
    expect((await service.call(path(ada), { token: (await service.signIn(bob.email)).token })).status).toBe(403)
    expect((await service.call("/v1/log/liabilities?day=2020-01-01")).body.code).toBe("liabilities_not_found")
    for (const wrong of ["x", "2026-02-30", "2026-3-1", ""])
      expect((await service.call(`/v1/log/liabilities?day=${wrong}`)).status).toBe(400)
    const carol = await service.signIn("carol@example.com")
    expect((await service.call(`${path(carol)}?day=${today}`, { token: carol.token })).body.code).toBe(
      "no_balance_then"
    )
    const folder = mkdtempSync(join(tmpdir(), "liabilities-"))
    try {
      const file = join(folder, "liability.json")
      writeFileSync(file, JSON.stringify(body))
      const shown = await commandHere(["receipt", "verify", "--key", logKeys[0]!, file])
      expect([shown.code, shown.stderr]).toEqual([0, ""])
      expect(shown.stdout).toContain(`of ${total.accounts} accounts at the end of ${today}`)
    } finally {
      rmSync(folder, { recursive: true })
    }
    const verified = await commandHere(["verify"], { DATA_DIR: service.folder })
    expect([verified.code, verified.stderr]).toEqual([0, ""])
  })
})

/** The published vectors are those that this code makes, and the verifier accepts each receipt, and no other. */
import { generateKeyPairSync, hash, sign } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { publicOf } from "../../../src/books/log/Note.ts"
import { ReceiptInvalid, verify } from "../../../src/money/receipts/Verifier.ts"
import { origin, vectors } from "./Vectors.ts"

const made = vectors()

describe("the verifier", () => {
  it("is one file of at most 300 lines that imports nothing", () => {
    const text = readFileSync(join(import.meta.dirname, "../../../src/money/receipts/Verifier.ts"), "utf8")
    expect(text.split("\n").length).toBeLessThanOrEqual(301)
    expect(text).not.toMatch(/^import |\bfrom "|\bimport\(|\brequire\(|\bprocess\.|\bBuffer\b/m)
  })

  it("accepts a witness's cosignature, and can require it", async () => {
    const { privateKey } = generateKeyPairSync("ed25519")
    const name = "witness.example/w"
    const typed = Buffer.concat([Buffer.of(4), Buffer.from(publicOf(privateKey), "base64")])
    const id = hash("sha256", Buffer.concat([Buffer.from(`${name}\n`), typed]), "buffer").subarray(0, 4)
    const key = `${name}+${id.toString("hex")}+${typed.toString("base64")}`
    const receipt = made.receipts.at(-1)!
    const text = receipt.checkpoint.slice(0, receipt.checkpoint.lastIndexOf("\n\n") + 1)
    const cosigned = (time: bigint, stated = time) => {
      const stamp = Buffer.alloc(8)
      stamp.writeBigUInt64BE(stated)
      const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${time}\n${text}`), privateKey)
      const line = `— ${name} ${Buffer.concat([id, stamp, signature]).toString("base64")}\n`
      return { ...receipt, checkpoint: receipt.checkpoint + line }
    }
    const keys = [made.key, key]
    expect((await verify(cosigned(1_800_000_000n), keys, { witnesses: 1 })).signers).toEqual([origin, name])
    await expect(verify(receipt, keys, { witnesses: 1 })).rejects.toThrow("0 witnesses cosigned")
    await expect(verify(cosigned(1_800_000_000n, 5n), keys)).rejects.toThrow(
      "the signature of witness.example/w is wrong"
    )
    // A witness alone does not say that the log is the service's.
    await expect(verify(cosigned(1n), [key])).rejects.toThrow("not signed by a key of its log")
  })
})

/** The vendors' ids in the leaves of form 2. */
const vendorRequests = new Map([
  [32_768, "req_32768"],
  [65_536, "req_a - req_b"]
])

describe("the vectors of the log", () => {
  it("are the published ones; after a change that is meant, run vitest -u", async () => {
    await expect(`${JSON.stringify(made, null, 1)}\n`).toMatchFileSnapshot("vectors/log.json")
  })

  it("are verified, with their texts and amounts exact", async () => {
    for (const receipt of made.receipts) {
      const { entry, index, signers } = await verify(receipt, [made.key])
      expect([index, signers]).toEqual([receipt.index, [origin]])
      expect(entry.amount).toBe(BigInt(index + 1) ** 5n)
      expect(entry.balance).toBe(9_007_199_254_740_993n + BigInt(index))
      expect(entry.reference).toBe(`use_${index}`)
      expect(entry.vendor_requests).toBe(vendorRequests.get(index) ?? "")
    }
  })

  it("are refused under another checkpoint, index or proof", async () => {
    for (const [i, receipt] of made.receipts.entries()) {
      const other = made.receipts[(i + 3) % made.receipts.length]!
      for (const field of ["leaf", "index", "proof", "checkpoint"] as const) {
        if (receipt[field] === other[field]) continue
        await expect(verify({ ...receipt, [field]: other[field] }, [made.key])).rejects.toThrow(ReceiptInvalid)
      }
      for (const proof of [receipt.proof.slice(0, -44), `${receipt.proof}A`]) {
        if (proof === receipt.proof) continue
        await expect(verify({ ...receipt, proof }, [made.key])).rejects.toThrow(ReceiptInvalid)
      }
    }
  })
})

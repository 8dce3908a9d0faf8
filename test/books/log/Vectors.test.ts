/** The published vectors are those that this code makes, and the verifier accepts each receipt, and no other. */
import { describe, expect, it } from "vitest"
import { ReceiptInvalid, verify } from "../../../src/money/receipts/Verifier.ts"
import { origin, vectors } from "./Vectors.ts"

const made = vectors()

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

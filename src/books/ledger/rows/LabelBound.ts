/**
 * Limits a tenant's combinations of tags and end users per month, because filters read one row for each combination. Beyond the limit, a new
 * combination is stored with the label `(other)`. Known combinations keep their labels, and budgets count each call by its original labels.
 *
 * Where the specification is silent:
 * - A tenant can store about 100,000 combinations of tags and end users per UTC month. Each process counts separately, beginning when it starts.
 */
import { monthOf } from "../../../kernel/Moment.ts"
import type { Dimensions } from "../rules/Transaction.ts"

const combinationsMax = 100_000
const tenantsMax = 1_000
/** The maximum size of a set. Larger sets are converted to a bitmap. */
const fewMax = 1_000
const bits = 2 ** 20

/** The hashes of a tenant's combinations in a month. Combinations with equal hashes count as one. */
class Seen {
  private readonly few = new Set<number>()
  private bitmap: Uint32Array | undefined
  private count = 0

  /** Adds a combination. Returns whether it was already known or fits within the limit. */
  takes(hash: number, max: number): boolean {
    if (this.has(hash)) return true
    if (this.count >= max) return false
    this.count++
    if (this.bitmap !== undefined) this.set(hash)
    else if (this.few.add(hash).size > fewMax) {
      this.bitmap = new Uint32Array(bits / 32)
      for (const one of this.few) this.set(one)
      this.few.clear()
    }
    return true
  }

  private has(hash: number): boolean {
    return this.bitmap === undefined ? this.few.has(hash) : (this.bitmap[hash >>> 5]! & (1 << (hash & 31))) !== 0
  }

  private set(hash: number): void {
    this.bitmap![hash >>> 5]! |= 1 << (hash & 31)
  }
}

export class LabelBound {
  private readonly tenants = new Map<string, Seen>()
  private month = 0
  private readonly max: number

  constructor(max = combinationsMax) {
    this.max = max
  }

  /** Returns the dimensions to store, with the labels `(other)` if the combination exceeds the limit. */
  bounded<D extends Pick<Dimensions, "tenant_id" | "tags" | "end_user">>(dimensions: D, at: number): D {
    const { end_user, tags, tenant_id } = dimensions
    if (tags === undefined && end_user === undefined) return dimensions
    const month = monthOf(at)
    if (month > this.month) {
      this.month = month
      this.tenants.clear()
    }
    let seen = this.tenants.get(tenant_id)
    if (seen === undefined) {
      if (this.tenants.size >= tenantsMax) this.tenants.delete(this.tenants.keys().next().value!)
      this.tenants.set(tenant_id, (seen = new Seen()))
    }
    if (seen.takes(hashOf(`${end_user ?? ""}\n${tags ?? ""}`), this.max)) return dimensions
    return {
      ...dimensions,
      ...(tags !== undefined && { tags: "tags=(other)" }),
      ...(end_user !== undefined && { end_user: "(other)" })
    }
  }
}

/** Hashes a string with FNV-1a, folded to the number of bits in the bitmap. */
const hashOf = (text: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 20)) & (bits - 1)
}

/** The places that a node has for listeners: who has one, and whose listener gives way to another when all are taken. */
import type { AccountId } from "../../kernel/Ids.ts"

/** A listener in its place. */
export interface Placed {
  readonly account_id: AccountId
  /** Whether its tenant ever bought or received credit. */
  readonly paying: () => boolean
}

/** Of a node: for all listeners, and for those of one account. */
export const nodeMax = 2_000
export const accountMax = 8

export class Places<One extends Placed> implements Iterable<One> {
  /** The oldest first, as in each account's set. */
  private readonly all = new Set<One>()
  private readonly byAccount = new Map<AccountId, Set<One>>()

  get size(): number {
    return this.all.size
  }

  /** How many listeners the account has. */
  of(account: AccountId): number {
    return this.byAccount.get(account)?.size ?? 0
  }

  add(one: One): void {
    this.all.add(one)
    const own = this.byAccount.get(one.account_id)
    if (own === undefined) this.byAccount.set(one.account_id, new Set([one]))
    else own.add(one)
  }

  delete(one: One): void {
    this.all.delete(one)
    const own = this.byAccount.get(one.account_id)
    own?.delete(one)
    if (own?.size === 0) this.byAccount.delete(one.account_id)
  }

  /**
   * The listener that gives way to a new one. It is the oldest of the account that has most, if that has at least two more than the account
   * of the new one: then two accounts never take a place from each other in turn. Otherwise a paying tenant takes the place of the
   * oldest listener whose tenant does not pay.
   */
  givesWayTo({ account_id, paying }: Placed): One | undefined {
    let most: ReadonlySet<One> | undefined
    for (const own of this.byAccount.values()) if (own.size > (most?.size ?? 0)) most = own
    if (most !== undefined && most.size > this.of(account_id) + 1) return most.values().next().value
    if (!paying()) return undefined
    for (const one of this.all) if (!one.paying()) return one
    return undefined
  }

  [Symbol.iterator](): IterableIterator<One> {
    return this.all.values()
  }
}

/** A node's places for listeners. On a full node, a new listener can replace an existing listener. */
import type { AccountId } from "../../kernel/Ids.ts"

export interface Placed {
  readonly account_id: AccountId
  /** Returns whether the listener's tenant ever bought or received credit. */
  readonly paying: () => boolean
}

/** The maximum number of listeners per node and per account. */
export const nodeMax = 2_000
export const accountMax = 8

export class Places<One extends Placed> implements Iterable<One> {
  /** All listeners, oldest first. Each account's set uses the same order. */
  private readonly all = new Set<One>()
  private readonly byAccount = new Map<AccountId, Set<One>>()

  get size(): number {
    return this.all.size
  }

  /** Returns an account's listener count. */
  of(account: AccountId): number {
    return this.byAccount.get(account)?.size ?? 0
  }

  add(one: One): void {
    this.all.add(one)
    const accountListeners = this.byAccount.get(one.account_id)
    if (accountListeners === undefined) this.byAccount.set(one.account_id, new Set([one]))
    else accountListeners.add(one)
  }

  delete(one: One): void {
    this.all.delete(one)
    const accountListeners = this.byAccount.get(one.account_id)
    accountListeners?.delete(one)
    if (accountListeners?.size === 0) this.byAccount.delete(one.account_id)
  }

  /**
   * Chooses the listener that a new listener replaces: the oldest listener of the account with the most listeners. That account must have at least
   * two more listeners than the new listener's account; otherwise, two accounts could displace each other in turn. If no account qualifies, a paying
   * tenant's new listener replaces the oldest listener of a tenant that does not pay. Returns `undefined` if none may be replaced.
   */
  givesWayTo({ account_id, paying }: Placed): One | undefined {
    let largest: ReadonlySet<One> | undefined
    for (const accountListeners of this.byAccount.values())
      if (accountListeners.size > (largest?.size ?? 0)) largest = accountListeners
    if (largest !== undefined && largest.size > this.of(account_id) + 1) return largest.values().next().value
    if (!paying()) return undefined
    for (const one of this.all) if (!one.paying()) return one
    return undefined
  }

  [Symbol.iterator](): IterableIterator<One> {
    return this.all.values()
  }
}

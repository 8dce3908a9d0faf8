/**
 * Computes a digest of each account's ledger to compare two copies of the books. A digest consists of the entry count, the balance, and a hash over
 * the entries in order.
 */
import { hash } from "node:crypto"

export const entriesTable = "tollgate_ledger_entries"

interface AccountDigest {
  readonly entries: number
  readonly balance: string
  readonly hash: string
}

export interface DigestTotals {
  readonly accounts: number
  readonly entries: number
  /** In nano-USD. */
  readonly credits: bigint
  readonly debits: bigint
  readonly balances: bigint
  /** A SHA-256 hash over the accounts and the hashes of their ledgers. */
  readonly hash: string
}

/**
 * Takes all entries, slice by slice. In each slice, an account's rows are hashed together with the hash of the earlier slices. Two digests can
 * therefore be compared only if they read identical slices.
 */
export class Digest {
  private readonly accounts = new Map<string, AccountDigest>()
  private credits = 0n
  private debits = 0n
  private readonly places: Readonly<Record<"account" | "type" | "amount" | "balance", number>>

  /** Creates an empty digest. `columns` are the column names, in the order of the rows' values. */
  constructor(columns: ReadonlyArray<string>) {
    const place = (name: string) => columns.indexOf(name)
    this.places = {
      account: place("billing_account_id"),
      type: place("type"),
      amount: place("amount"),
      balance: place("balance")
    }
  }

  read(rows: ReadonlyArray<ReadonlyArray<string | null>>): void {
    const { account, amount, balance, type } = this.places
    const slice = new Map<string, { text: string; entries: number; balance: string }>()
    for (const row of rows) {
      const id = row[account]!
      let own = slice.get(id)
      if (own === undefined) slice.set(id, (own = { text: "", entries: 0, balance: "0" }))
      own.text += `${JSON.stringify(row)}\n`
      own.entries++
      own.balance = row[balance]!
      if (row[type] === "credit") this.credits += BigInt(row[amount]!)
      else this.debits += BigInt(row[amount]!)
    }
    for (const [id, { balance, entries, text }] of slice) {
      const before = this.accounts.get(id)
      this.accounts.set(id, {
        entries: (before?.entries ?? 0) + entries,
        balance,
        hash: hash("sha256", (before?.hash ?? "") + text)
      })
    }
  }

  totals(): DigestTotals {
    let [entries, balances] = [0, 0n]
    const hashes: Array<string> = []
    for (const [id, one] of this.accounts) {
      entries += one.entries
      balances += BigInt(one.balance)
      hashes.push(`${id} ${one.hash}\n`)
    }
    return {
      accounts: this.accounts.size,
      entries,
      credits: this.credits,
      debits: this.debits,
      balances,
      hash: hash("sha256", hashes.toSorted().join(""))
    }
  }

  /** Returns a sentence for each account whose ledger differs in the copy. */
  differences(copy: Digest): ReadonlyArray<string> {
    const ids = new Set([...this.accounts.keys(), ...copy.accounts.keys()])
    return [...ids].flatMap((id) => {
      const [here, there] = [this.accounts.get(id), copy.accounts.get(id)]
      if (here?.hash === there?.hash) return []
      const words = (one: AccountDigest | undefined) =>
        one === undefined ? "no entries" : `${one.entries} entries and a balance of ${one.balance} nano-USD`
      return [`the ledger of ${id} contains ${words(here)}, but its copy contains ${words(there)}`]
    })
  }
}

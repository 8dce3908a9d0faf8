/** Invariants of proofs of liabilities: their statements and blocks, compared with the ledger's balances at the end of each day. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { sliceSize, turn } from "../../kernel/Pieces.ts"
import { accountsAfter, movementsAfter } from "../ledger/rows/ClosingBalances.ts"
import type { ClosingBalance } from "../ledger/rows/ClosingBalances.ts"
import { findingsMax } from "../ledger/rules/Check.ts"
import type { Check, CheckRow } from "../ledger/rules/Check.ts"
import { statementText, tileWidth } from "./Balances.ts"
import * as Head from "./Head.ts"
import { blockOf, sumsOf } from "./Liabilities.ts"
import * as Rows from "./LiabilityRows.ts"
import type { Block, Day } from "./LiabilityRows.ts"
import * as Note from "./Note.ts"

/** Checks a statement's signature, and compares its text with the stored blocks. */
const statementFaults = Effect.fnUntraced(function* (sql: SqlClient, day: Day) {
  const faults: Array<CheckRow> = []
  const head = yield* Head.readShort(sql)
  if (day.statement === null) return faults
  const fault = (expected: string, found: string) => faults.push({ id: `the statement of ${day.day}`, expected, found })
  const text = head && Note.opened(day.statement, yield* Head.keys(sql, head.origin))
  if (head === undefined || text === undefined) {
    fault("signed", "not signed by a key of the log")
    return faults
  }
  const sums = sumsOf(yield* Rows.blocks(sql, day.day))
  const due = statementText({ origin: head.origin, day: day.day, entries: day.entries, ...sums })
  if (text !== due) fault(JSON.stringify(due), JSON.stringify(text))
  return faults
})

const newestFaults = Effect.fnUntraced(function* (sql: SqlClient) {
  const day = yield* Rows.statedDay(sql, undefined)
  return day === undefined ? [] : yield* statementFaults(sql, day)
})

/** All balances as of a ledger row, by account number. A million accounts take 12 MB. */
class Balances {
  private balances = new BigInt64Array(1_024)
  private entries = new Uint32Array(1_024)
  /** The sum of all amounts: credits minus debits. */
  sum = 0n
  /** The number of entries. */
  count = 0

  enter(account: number, entry: number, balance: bigint, amount: bigint): void {
    if (account >= this.entries.length) this.grow(account)
    this.balances[account] = balance
    this.entries[account] = entry
    this.sum += amount
    this.count++
  }

  /** Returns an account's balance; `undefined` before its first entry. */
  of(id: string, account: number): ClosingBalance | undefined {
    const entry = this.entries[account] ?? 0
    return entry === 0 ? undefined : { account, id, entry, balance: this.balances[account]! }
  }

  private grow(account: number): void {
    const length = 2 ** Math.ceil(Math.log2(account + 1))
    const [balances, entries] = [new BigInt64Array(length), new Uint32Array(length)]
    balances.set(this.balances)
    entries.set(this.entries)
    this.balances = balances
    this.entries = entries
  }
}

const shown = (block: Block | undefined): string =>
  block === undefined
    ? "absent"
    : `the block ${block.n} of ${block.width} accounts from ${block.first} to ${block.last} with ${block.sum} nano-USD and the hash ${Buffer.from(block.hash).toString("base64")}`

/** Compares a day's blocks with those computed from the balances. Without a statement, the last blocks may still be missing. */
const blockFaults = Effect.fnUntraced(function* (sql: SqlClient, salt: string, day: Day, balances: Balances) {
  const faults: Array<CheckRow> = []
  const stored = yield* Rows.blocks(sql, day.day)
  let total = 0n
  let waiting: Array<ClosingBalance> = []
  let n = 0
  const compare = (found: ReadonlyArray<ClosingBalance>) => {
    const due = blockOf(salt, day.day, n, found)
    const block = stored[n]
    total += due.sum
    if (shown(due) !== shown(block) && (block !== undefined || day.statement !== null) && faults.length < findingsMax)
      faults.push({ id: `block ${n} of ${day.day}`, expected: shown(due), found: shown(block) })
    n++
  }
  for (let last = 0; ;) {
    const accounts = yield* accountsAfter(sql, last, sliceSize)
    waiting.push(...accounts.flatMap(({ id, number }) => balances.of(id, number) ?? []))
    for (; waiting.length >= tileWidth; waiting = waiting.slice(tileWidth)) compare(waiting.slice(0, tileWidth))
    if (accounts.length < sliceSize) break
    last = accounts.at(-1)!.number
    yield* turn
  }
  if (waiting.length > 0) compare(waiting)
  for (const block of stored.slice(n))
    faults.push({ id: `block ${block.n} of ${day.day}`, expected: "absent", found: shown(block) })
  if (total !== balances.sum)
    faults.push({
      id: `the total of ${day.day}`,
      expected: `${balances.sum} nano-USD, the trial balance`,
      found: `${total} nano-USD`
    })
  return faults
})

/** Computes the balances at the end of each day from all entries, and compares them with the stored proofs. */
const dayFaults = Effect.fnUntraced(function* (sql: SqlClient) {
  const faults: Array<CheckRow> = []
  for (const { day, n } of yield* Rows.strayBlocks(sql, findingsMax))
    faults.push({ id: `block ${n} of ${day}`, expected: "absent", found: "present" })
  const head = yield* Head.readShort(sql)
  const days = yield* Rows.days(sql)
  const balances = new Balances()
  let seq = 0
  for (const day of days) {
    faults.push(...(yield* statementFaults(sql, day)))
    if (head === undefined) continue
    for (;;) {
      const movements = yield* movementsAfter(sql, seq, day.entry, sliceSize)
      for (const { account, amount, balance, entry, seq } of movements) {
        if (account !== null) balances.enter(account, entry, balance, amount)
        else if (faults.length < findingsMax)
          faults.push({ id: `row ${seq} of the ledger`, expected: "of an account", found: "of none" })
      }
      if (movements.length === 0) break
      seq = movements.at(-1)!.seq
      yield* turn
    }
    if (balances.count !== day.entries || seq !== day.entry)
      faults.push({
        id: `the end of ${day.day}`,
        expected: `${balances.count} entries up to row ${seq}`,
        found: `${day.entries} entries up to row ${day.entry}`
      })
    faults.push(...(yield* blockFaults(sql, head.salt, day, balances)))
    if (faults.length >= findingsMax) break
  }
  return faults.slice(0, findingsMax)
})

const sentence = ({ expected, found, id }: CheckRow): string =>
  `in the proofs of liabilities, ${id} should be ${expected}, but is ${found}`

export const checks: ReadonlyArray<Check> = [
  {
    name: "the newest statement of liabilities is signed and has its root",
    isShort: true,
    find: newestFaults,
    sentence
  },
  { name: "the proofs of liabilities have the balances of their days", find: dayFaults, sentence }
]

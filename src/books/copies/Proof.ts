/** Compares each row of a copy with its source. */
import { Effect } from "effect"
import { Digest, entriesTable } from "../ledger/audit/Digest.ts"
import type { DigestTotals } from "../ledger/audit/Digest.ts"
import { keyOf, nameOf, sliceOf } from "../../storage/copy/Tables.ts"
import type { End, Row, Table } from "../../storage/copy/Tables.ts"

export interface Proof {
  readonly rows: number
  readonly ledger: DigestTotals
  /** Sentences: up to two for each table that differs, and one for each of up to `accountsMax` accounts. */
  readonly differences: ReadonlyArray<string>
}

const accountsMax = 20

/** Reads both sides and compares them. Fails with the driver's error. `progress` receives the number of source rows in each slice. */
export const compare = Effect.fnUntraced(function* (
  tables: ReadonlyArray<Table>,
  source: End,
  copy: End,
  progress: (rows: number) => Effect.Effect<void>
) {
  const differences: Array<string> = []
  const columns = tables.find(({ name }) => name === entriesTable)!.columns.map(({ name }) => name)
  const [ledger, ledgerOfCopy] = [new Digest(columns), new Digest(columns)]
  let rows = 0
  for (const table of tables) {
    const isLedger = table.name === entriesTable
    const [here, there] = [new Reading(source, table), new Reading(copy, table)]
    let difference: string | undefined
    while (here.goesOn || there.goesOn) {
      // @effect-diagnostics-next-line unknownInEffectCatch:off -- the type of the error depends on the driver; the caller describes it
      const [theirs, ours] = yield* Effect.tryPromise({
        try: () => Promise.all([there.next(), here.next()]),
        catch: (error) => error
      })
      if (isLedger) {
        ledger.read(ours)
        ledgerOfCopy.read(theirs)
      }
      difference ??= differenceOf(table, ours, theirs)
      yield* progress(ours.length)
    }
    rows += here.rows
    if (here.rows !== there.rows)
      differences.push(`${table.name} contains ${here.rows} rows, but its copy contains ${there.rows}`)
    if (difference !== undefined) differences.push(difference)
  }
  const accounts = ledger.differences(ledgerOfCopy)
  differences.push(...accounts.slice(0, accountsMax))
  if (accounts.length > accountsMax) differences.push(`${accounts.length - accountsMax} more accounts differ`)
  return { rows, ledger: ledger.totals(), differences } satisfies Proof
})

class Reading {
  rows = 0
  goesOn = true
  private after: Row | undefined
  private readonly end: End
  private readonly table: Table

  constructor(end: End, table: Table) {
    this.end = end
    this.table = table
  }

  async next(): Promise<ReadonlyArray<Row>> {
    if (!this.goesOn) return []
    const limit = sliceOf(this.table)
    const rows = await this.end.read(this.table, this.after, limit)
    this.goesOn = rows.length === limit
    this.rows += rows.length
    if (rows.length > 0) this.after = keyOf(this.table, rows.at(-1)!)
    return rows
  }
}

const differenceOf = (table: Table, ours: ReadonlyArray<Row>, theirs: ReadonlyArray<Row>): string | undefined => {
  for (let i = 0; i < Math.max(ours.length, theirs.length); i++) {
    const [here, there] = [ours[i], theirs[i]]
    if (here === undefined) return `the copy contains ${nameOf(table, there!)}, but the source does not`
    if (there === undefined) return `${nameOf(table, here)} is missing from the copy or is at another position`
    const place = here.findIndex((value, place) => value !== there[place])
    if (place < 0) continue
    return table.key.includes(place)
      ? `the source contains ${nameOf(table, here)} where the copy contains ${nameOf(table, there)}`
      : `${nameOf(table, here)}: ${table.columns[place]!.name} differs in the copy`
  }
  return undefined
}

/**
 * Copies the books row by row from one engine to the other, and compares the copy with the source.
 *
 * Where the specification is silent:
 * - Tables are copied one by one, in slices by primary key. Each slice is one transaction on the target that also stores the progress
 *   (`tollgate_sql_copy`), so an interrupted copy can continue. While that table exists, no other command uses the target.
 * - The source is locked against writes while it is copied and compared. If the source was written to after an interruption, the copy starts over.
 * - PostgreSQL cannot store a NUL character in a string, so it is replaced with U+FFFD and reported. A NUL character in a key is refused.
 * - A host's own tables in the same SQLite database are not copied.
 */
import { Data, Effect } from "effect"
import type { Scope } from "effect"
import { hash } from "node:crypto"
import * as Engine from "../../storage/engine/Engine.ts"
import type { Location, PostgresDatabase, SqliteFile } from "../../storage/database/Location.ts"
import type { DatabaseUnusable } from "../../storage/database/Unusable.ts"
import * as PostgresEnd from "../../storage/copy/PostgresEnd.ts"
import { compare } from "./Proof.ts"
import type { Proof } from "./Proof.ts"
import * as SqliteEnd from "../../storage/copy/SqliteEnd.ts"
import { keyOf, sliceOf } from "../../storage/copy/Tables.ts"
import type { End, Row, Source, Table, Target } from "../../storage/copy/Tables.ts"

/** The copy was refused or failed. The message is for the operator. */
export class CopyRefused extends Data.TaggedError("CopyRefused")<{ readonly message: string }> {}

const refused = (message: string) => new CopyRefused({ message })

/** A copy's direction: from a file to a server, or back. */
export type Move =
  | { readonly from: SqliteFile; readonly to: PostgresDatabase }
  | { readonly from: PostgresDatabase; readonly to: SqliteFile }

/** Returns the copy's direction, or `undefined` if both databases use the same engine. */
export const moveOf = (from: Location, to: Location): Move | undefined =>
  from.engine === "sqlite"
    ? to.engine === "postgres"
      ? { from, to }
      : undefined
    : to.engine === "sqlite"
      ? { from, to }
      : undefined

export interface Progress {
  readonly rows: number
  readonly of: number
  /** The number of rows that an earlier run copied. */
  readonly before: number
}

export type Report = (what: "copied" | "compared", progress: Progress) => Effect.Effect<void>

/** How a copy begins: for the first time, resumed, or from the start because the source has changed. */
export type Beginning = "new" | "resumed" | "anew"

/** Both databases. The source is locked against writes until the scope closes. */
export interface Opened {
  readonly move: Move
  readonly source: Source
  readonly target: Target
  readonly tables: ReadonlyArray<Table>
}

export const open = (move: Move): Effect.Effect<Opened, DatabaseUnusable, Scope.Scope> =>
  move.from.engine === "sqlite"
    ? Effect.gen(function* () {
        const source = yield* SqliteEnd.source(move.from as SqliteFile)
        const target = yield* PostgresEnd.target(move.to as PostgresDatabase)
        return { move, source, target, tables: source.tables }
      })
    : Effect.gen(function* () {
        const source = yield* PostgresEnd.source(move.from as PostgresDatabase)
        const target = yield* SqliteEnd.target(move.to as SqliteFile)
        return { move, source, target, tables: target.tables }
      })

/** Converts an error to a refusal. An engine's errors are explained in a sentence. */
const refusedBy =
  (location: Location) =>
  (error: unknown): CopyRefused =>
    Engine.isFault(location, error)
      ? refused(Engine.wordsOf(location, error))
      : refused(error instanceof Error ? error.message : String(error))

const refusedByEither = ({ from, to }: Move, error: unknown): CopyRefused =>
  refusedBy(Engine.isFault(from, error) ? from : to)(error)

const at = <A>(location: Location, attempt: () => Promise<A>): Effect.Effect<A, CopyRefused> =>
  Effect.tryPromise({ try: attempt, catch: refusedBy(location) })

/** Copies the rows that are still missing from the target. */
export const copy = Effect.fnUntraced(function* (opened: Opened, report: Report) {
  const { move, source, tables, target } = opened
  const marks = (yield* at(move.to, target.marks))!
  const doneOf = (table: Table): Done => JSON.parse(marks.get(table.name) ?? `{"rows":0}`) as Done
  let [before, of] = [0, 0]
  for (const table of tables) {
    before += doneOf(table).rows
    of += yield* at(move.from, () => source.count(table))
  }
  let rows = before
  for (const table of tables) {
    let done = doneOf(table)
    if (done.whole === true) continue
    let slice = yield* at(move.from, () => source.read(table, done.after, sliceOf(table)))
    while (done.whole !== true) {
      done = behind(table, done, slice)
      const copied = slice.length
      slice = yield* Effect.tryPromise({
        try: () => writeAndRead(opened, table, slice, done),
        catch: (error) => refusedByEither(move, error)
      })
      rows += copied
      yield* report("copied", { rows, of, before })
    }
  }
  yield* at(move.to, target.settle)
})

interface Done {
  readonly rows: number
  readonly after?: Row
  readonly whole?: boolean
}

const behind = (table: Table, done: Done, slice: ReadonlyArray<Row>): Done => ({
  rows: done.rows + slice.length,
  whole: slice.length < sliceOf(table),
  ...(slice.length > 0 && { after: keyOf(table, slice.at(-1)!) })
})

/** Writes a slice, reads the next one meanwhile, and returns it (empty after the last). `done` is the progress after the written slice. */
const writeAndRead = async ({ source, target }: Opened, table: Table, slice: ReadonlyArray<Row>, done: Done) => {
  let next: Promise<ReadonlyArray<Row>> | undefined
  const read = () => (next ??= source.read(table, done.after, sliceOf(table)))
  await target.write(table, slice, [table.name, JSON.stringify(done)], () => {
    // If the write fails, a rejected read must still be handled.
    if (done.whole !== true) read().catch(() => {})
  })
  return done.whole === true ? [] : read()
}

/** Prepares the target. Fails if it contains other books or an unfinished copy of another source, or if the database versions differ. */
export const begin = Effect.fnUntraced(function* (opened: Opened) {
  const { move, source, tables, target } = opened
  yield* checkColumns(opened)
  const state = yield* stateOf(move.from, source, tables)
  const marks = yield* at(move.to, target.marks)
  if (marks === undefined) {
    for (const table of tables)
      if ((yield* at(move.to, () => target.read(table, undefined, 1))).length > 0)
        return yield* refused(`${target.shown} already contains books (${table.name} has rows); use an empty database`)
  } else if (marks.get("source") !== source.shown)
    return yield* refused(
      `${target.shown} is an unfinished copy of ${marks.get("source")}; finish that copy, or use an empty database`
    )
  if (marks?.get("state") === state) return "resumed" satisfies Beginning as Beginning
  yield* at(move.to, () =>
    target.begin(
      tables,
      new Map([
        ["source", source.shown],
        ["state", state]
      ])
    )
  )
  return (marks === undefined ? "new" : "anew") satisfies Beginning as Beginning
})

/** Tables with at most this many rows are read in full to detect writes to the source. */
const smallMax = 50_000

/**
 * Computes a fingerprint that reveals most writes to the source. It covers each table's row count and last row, and all rows of small tables. The
 * later comparison of all rows finds any other change.
 */
const stateOf = (from: Location, source: Source, tables: ReadonlyArray<Table>) =>
  at(from, async () => {
    let state = ""
    for (const table of tables) {
      const count = await source.count(table)
      const rows = count <= smallMax ? await source.read(table, undefined, smallMax) : [await source.last(table)]
      state = hash("sha256", state + JSON.stringify([table.name, count, rows]))
    }
    return state
  })

/** The columns that exist only in PostgreSQL. `settle` sets them. */
const settledColumns: ReadonlySet<string> = new Set(["booked_at", "limits"])

/** Checks that both sides have the same tables and columns, which means that their versions are equal. */
const checkColumns = Effect.fnUntraced(function* ({ move, source, target, tables }: Opened) {
  const columns = (location: Location, end: End) => at(location, end.columns)
  const [here, there] = [yield* columns(move.from, source), yield* columns(move.to, target)]
  for (const [one, other, shown] of [
    [here, there, target.shown],
    [there, here, source.shown]
  ] as const)
    for (const [table, names] of one) {
      const known = other.get(table)
      // The tables that exist only in PostgreSQL describe its nodes.
      if (known === undefined && !tables.some(({ name }) => name === table)) continue
      const missing =
        known === undefined ? table : [...names].find((name) => !settledColumns.has(name) && !known.has(name))
      if (missing !== undefined) return yield* refused(`${shown} has no ${missing} (${table}), so its version differs`)
    }
})

export const prove = ({ move, source, tables, target }: Opened, report: Report): Effect.Effect<Proof, CopyRefused> =>
  Effect.gen(function* () {
    let of = 0
    for (const table of tables) of += yield* at(move.from, () => source.count(table))
    source.replaced.clear()
    let rows = 0
    return yield* compare(tables, source, target, (more) => {
      rows += more
      return report("compared", { rows, of, before: 0 })
    }).pipe(Effect.mapError((error) => refusedByEither(move, error)))
  })

/** Marks the copy as finished, so that the target can be used. */
export const release = ({ move, target }: Opened): Effect.Effect<void, CopyRefused> => at(move.to, target.release)

/** `tollgate migrate`: upgrades the database. With `--to`, copies it to a database of the other engine. */
import { Command, Options } from "@effect/cli"
import { Console, Effect, Either, Option } from "effect"
import { verifySince } from "../Checks.ts"
import * as DataFolder from "../DataFolder.ts"
import { databaseAt } from "../Environment.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import { toDecimal } from "../../kernel/Money.ts"
import type { Nano } from "../../kernel/Money.ts"
import * as Copy from "../../books/copies/Copy.ts"
import type { Proof } from "../../books/copies/Proof.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import type { Location } from "../../storage/database/Location.ts"
import { upgrade } from "./Database.ts"
import { everyInterval } from "./Progress.ts"
import { fromEnvironment, refuse } from "./Report.ts"
import { progress } from "./Verify.ts"

const to = Options.text("to").pipe(
  Options.withDescription(
    "copy the books of a stopped service to postgres://user:password@host/database, or from there to sqlite:FILE; running the command again continues an interrupted copy"
  ),
  Options.optional
)

/** Creates or upgrades the database, and returns the migrations that were applied. */
const upToDate = Effect.fnUntraced(function* (facts: EnvironmentFacts) {
  yield* DataFolder.make(facts)
  const found = yield* Engine.look(facts.database, { writing: true })
  yield* DataFolder.keepPrivate(facts)
  return yield* upgrade(facts, found ?? 0)
})

const update = Effect.gen(function* () {
  const facts = yield* fromEnvironment
  const applied = yield* upToDate(facts)
  yield* Console.log(
    applied.length === 0
      ? `${facts.database.shown} is up to date`
      : `${facts.database.shown}: applied ${applied.map(([id, name]) => `${String(id).padStart(4, "0")}_${name}`).join(", ")}`
  )
  yield* withIndexes(facts.database)
})

/** Builds the indexes that a new version adds to large tables. The service can start while they are built. */
const withIndexes = (database: Location) =>
  Effect.flatMap(everyInterval, (print) =>
    Engine.completeIndexes(
      database,
      {
        begin: () => Effect.void,
        end: ({ name }, millis) =>
          Console.log(`${database.shown}: built the index ${name} in ${(millis / 1_000).toFixed(1)} s`)
      },
      ({ index, percent, phase }) =>
        print((seconds) => `${index}: ${phase}${percent === null ? "" : ` (${percent} %)`} after ${seconds} s`)
    )
  )

const moveOf = (facts: EnvironmentFacts, to: string) =>
  Effect.gen(function* () {
    const target = yield* Either.match(databaseAt(to), {
      onLeft: () => refuse("--to: must be postgres://user:password@host/database or sqlite:FILE"),
      onRight: (location) => Effect.succeed(location)
    })
    const move = Copy.moveOf(facts.database, target)
    if (move !== undefined) return move
    return yield* refuse(
      facts.database.engine === "sqlite"
        ? "--to copies a SQLite file to PostgreSQL; to copy the file itself, use backup --to FILE"
        : "--to copies from PostgreSQL to a SQLite file; to copy to another PostgreSQL database, use pg_dump and pg_restore"
    )
  })

const open = (facts: EnvironmentFacts, move: Copy.Move) =>
  Effect.gen(function* () {
    yield* DataFolder.appliedMigration(facts)
    const target: EnvironmentFacts = { ...facts, database: move.to }
    yield* DataFolder.make(target)
    yield* Engine.look(move.to, { writing: true, copying: true })
    yield* DataFolder.keepPrivate(move.to.engine === "sqlite" ? target : facts)
    yield* Engine.lock(move.from)
    yield* Engine.lock(move.to)
    yield* Engine.migrate(move.from)
    yield* Engine.migrate(move.to)
    // An earlier version may have started the copy.
    yield* withIndexes(move.to)
    return yield* Copy.open(move)
  })

/** Prints the progress and the estimated remaining time on stderr. */
const copyProgress = Effect.map(
  everyInterval,
  (print): Copy.Report =>
    (what, { before, of, rows }) =>
      print((seconds) => {
        const left = Math.ceil((seconds * (of - rows)) / Math.max(1, rows - before))
        return `${what} ${rows} of ${of} rows after ${seconds} s, about ${left} s left`
      })
)

const beginnings: Readonly<Record<Copy.Beginning, string | undefined>> = {
  new: undefined,
  resumed: "continuing the interrupted copy",
  anew: "the source has changed since the copy was interrupted; starting over"
}

const copy = (to: string) =>
  Effect.gen(function* () {
    const facts = yield* fromEnvironment
    const move = yield* moveOf(facts, to)
    const opened = yield* open(facts, move)
    const beginning = beginnings[yield* Copy.begin(opened)]
    if (beginning !== undefined) yield* Console.error(beginning)
    yield* Copy.copy(opened, yield* copyProgress)
    const proof = yield* Copy.prove(opened, yield* copyProgress)
    const { findings } = yield* Effect.provide(
      verifySince(undefined, { progress: yield* progress }),
      Engine.reading(move.to)
    )
    const wrong = [...proof.differences, ...findings.map(({ check, message }) => `${check}: ${message}`)]
    yield* Effect.forEach(wrong, (line) => Console.log(line), { discard: true })
    if (wrong.length > 0)
      return yield* refuse(
        `${move.to.shown} differs from ${move.from.shown}, so no service will use it; ${move.from.shown} is unchanged`
      )
    yield* Copy.release(opened)
    for (const line of linesOf(proof, opened.tables.length, move.to)) yield* Console.log(line)
    for (const [column, count] of opened.source.replaced)
      yield* Console.log(
        `${column}: replaced NUL characters with U+FFFD in ${count} rows, because PostgreSQL cannot store them`
      )
    yield* Console.log(nextSteps(facts, move))
  })

const linesOf = ({ ledger, rows }: Proof, tables: number, to: Location): ReadonlyArray<string> => [
  `${rows} rows in ${tables} tables are identical in both databases`,
  `${ledger.accounts} accounts: the entries, balance and hash of each ledger are identical; ${ledger.entries} entries, ` +
    `credits ${usd(ledger.credits)}, debits ${usd(ledger.debits)}, balances ${usd(ledger.balances)} USD, sha256 ${ledger.hash}`,
  `${to.shown}: every invariant of the books holds`
]

const usd = (nano: bigint) => toDecimal(nano as Nano)

const nextSteps = ({ data_dir, secret }: EnvironmentFacts, { from, to }: Copy.Move): string => {
  const url = to.engine === "sqlite" ? `sqlite:${to.path}` : to.shown
  const secretLocation =
    secret === undefined ? `${data_dir}/secret (or its content as TOLLGATE_SECRET)` : "TOLLGATE_SECRET"
  return (
    `Next: set DATABASE_URL=${url}${to.engine === "sqlite" ? "" : " (with its password)"} wherever the service runs, and start the service with the same secret, ${secretLocation}: ` +
    `keys and tokens are useless without the secret. ${from.shown} is unchanged: keep it, but do not serve it again`
  )
}

export const command = Command.make("migrate", { to }, ({ to }) =>
  Effect.scoped(Option.match(to, { onNone: () => update, onSome: copy }))
).pipe(
  Command.withDescription(
    "Create or upgrade the database, as serve does at its start. With --to, copy the books to a database of the other engine, compare every row, and verify the copy"
  )
)

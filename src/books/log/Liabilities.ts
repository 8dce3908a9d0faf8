/**
 * Proofs of liabilities: a daily Merkle sum tree over all account balances at the end of the UTC day. The log's key signs the root and the total. A
 * customer can verify that their balance is part of the total, and anyone can compare the total with the operator's declared liabilities.
 *
 * Where the specification is silent:
 * - A balance is taken after the account's last entry of the day, so a day can be recomputed at any time. Every account with an entry is a leaf, even
 *   with a balance of 0. Credit in pending transfers is not part of any balance or of the total.
 * - The day ends with the last entry in the log before midnight (UTC), determined at least a minute later. Its row is stored. An entry that a slow
 *   node commits later belongs to the next day.
 * - The first day is the day before the loop first runs. Missed days are added afterwards, one after another.
 * - Only the blocks' sums and hashes are stored, about half a byte per account and day. Leaves are recomputed on demand.
 * - `log.liabilities: false` disables the loop. Earlier statements remain.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Clock, Context, Effect, Layer } from "effect"
import type { Duration } from "effect"
import * as Loop from "../../kernel/Loop.ts"
import { day as dayMillis, parse, toDay } from "../../kernel/Moment.ts"
import { turn } from "../../kernel/Pieces.ts"
import { accountNumber, closingBalances, lastEntryBefore } from "../ledger/rows/ClosingBalances.ts"
import type { ClosingBalance } from "../ledger/rows/ClosingBalances.ts"
import { lastEntry } from "../ledger/rows/EntriesInOrder.ts"
import type { BooksUnavailable } from "../ledger/rules/Problems.ts"
import { tryWrite } from "../ledger/write/Statements.ts"
import { Writer } from "../ledger/write/Writer.ts"
import type { WriterContract } from "../ledger/write/Writer.ts"
import { leavesOf, statementText, tileWidth } from "./Balances.ts"
import { ChargeLog } from "./ChargeLog.ts"
import type { ChargeLogContract } from "./ChargeLog.ts"
import * as Head from "./Head.ts"
import * as Rows from "./LiabilityRows.ts"
import type { Block, Day } from "./LiabilityRows.ts"
import { LogSettings } from "./Settings.ts"
import * as SumTree from "./SumTree.ts"

/** A day's signed statement. */
export interface LiabilityStatement {
  readonly day: string
  /** A note with the log's signature. */
  readonly statement: string
}

/** The proof that an account's balance is part of a day's total. */
export interface LiabilityProof extends LiabilityStatement {
  /** The leaf text (`Balances`). */
  readonly leaf: string
  readonly index: number
  /** The inclusion path, from the leaf upwards: each sibling's sum and hash, concatenated and encoded as base64. */
  readonly proof: string
}

export interface LiabilitiesContract {
  /** Builds the proof of the next day that has ended, if any. Returns the pause until the next attempt. */
  readonly build: Effect.Effect<Duration.DurationInput | undefined, BooksUnavailable>
  /** The job that runs `build`. `layerJobs` runs it. */
  readonly job: Loop.Job
  /** Returns the statement of this day or, without a day, the newest; `undefined` if there is none. */
  readonly statement: (day: string | undefined) => Effect.Effect<LiabilityStatement | undefined>
  /** Returns the proof of an account's balance; `undefined` if the account had no entries up to the end of the day. */
  readonly proof: (account: string, stated: LiabilityStatement) => Effect.Effect<LiabilityProof | undefined>
}

export class Liabilities extends Context.Tag("tollgate/log/Liabilities")<Liabilities, LiabilitiesContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(Liabilities, make))
  static readonly layerJobs = Loop.layer(Liabilities, ({ job }) => [job])
}

/** How long after midnight a day is closed, in milliseconds. By then, its entries are normally committed. */
const closesAfter = 60_000
/** The maximum pause until the next day, and the pause while the log lacks entries or another node builds the day. */
const pauseMax = 600_000
const pauseBehind = "10 seconds"
/** The number of blocks per transaction. */
const blocksInTransaction = 16

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly log: ChargeLogContract
}

const make = Effect.gen(function* () {
  const parts: Parts = { sql: yield* SqlClient, writer: yield* Writer, log: yield* ChargeLog }
  const { liabilities } = yield* LogSettings
  const build = buildOf(parts)
  return {
    build,
    job: { name: "liabilities", turn: liabilities ? build : Effect.succeed(undefined) },
    statement: (day) =>
      Effect.orDie(
        Effect.map(Rows.statedDay(parts.sql, day), (found) =>
          found === undefined ? undefined : { day: found.day, statement: found.statement! }
        )
      ),
    proof: proofOf(parts)
  } satisfies LiabilitiesContract
})

// ---- building -----------------------------------------------------------------------------------------------------------

const buildOf = (parts: Parts): LiabilitiesContract["build"] =>
  Effect.gen(function* (): Effect.fn.Return<Duration.DurationInput | undefined, BooksUnavailable> {
    const now = yield* Clock.currentTimeMillis
    const newest = yield* Effect.orDie(Rows.newestDay(parts.sql))
    if (newest !== undefined && newest.statement === null) return yield* finishDay(parts, newest)
    const last = toDay(now - closesAfter - dayMillis)
    const next = newest === undefined ? last : toDay(parse(newest.day)! + dayMillis)
    if (next > last) return Math.min(pauseMax, parse(next)! + dayMillis + closesAfter - now)
    const begun = yield* Effect.orDie(endOf(parts, next))
    if (begun === undefined) return pauseBehind
    const isOurs = yield* tryWrite(parts.writer, Rows.beginning(begun))
    // Another node is building the day.
    if (!isOurs) return pauseBehind
    return yield* finishDay(parts, { ...begun, statement: null })
  })

/** Finds a day's last entry; `undefined` while the log might lack entries of the day. */
const endOf = Effect.fnUntraced(function* ({ sql }: Parts, day: string) {
  const last = yield* lastEntry(sql)
  const head = yield* Head.readShort(sql)
  if (head === undefined) return undefined
  const entry = yield* lastEntryBefore(sql, parse(day)! + dayMillis, head.entry)
  // The day might have entries after the log's head.
  if (entry === head.entry && last > head.entry) return undefined
  return { day, entry, entries: yield* Head.entriesUpTo(sql, entry) }
})

/** Adds the missing blocks, then the statement. Returns the pause. */
const finishDay = Effect.fnUntraced(function* (
  parts: Parts,
  day: Day
): Effect.fn.Return<Duration.DurationInput, BooksUnavailable> {
  const { log, sql, writer } = parts
  const head = yield* Effect.orDie(Head.readShort(sql))
  if (head === undefined) return pauseBehind
  let before = yield* Effect.orDie(Rows.lastBlock(sql, day.day))
  let pending: Array<Block> = []
  const reader = balancesAfter(sql, day.entry, before?.last ?? 0)
  for (let n = (before?.n ?? -1) + 1; ; n++) {
    const balances = yield* Effect.orDie(reader)
    if (balances.length > 0) pending.push((before = blockOf(head.salt, day.day, n, balances)))
    const isLast = balances.length < tileWidth
    if (pending.length === blocksInTransaction || (isLast && pending.length > 0)) {
      const isOurs = yield* tryWrite(writer, ...pending.map((block) => Rows.adding(day.day, block)))
      // Another node is building the day.
      if (!isOurs) return pauseBehind
      pending = []
    }
    if (isLast) break
    yield* turn
  }
  const blocks = yield* Effect.orDie(Rows.blocks(sql, day.day))
  const sums = { origin: head.origin, day: day.day, entries: day.entries, ...sumsOf(blocks) }
  const statement = yield* log.sign(statementText(sums))
  if (statement === undefined) return pauseBehind
  yield* tryWrite(writer, Rows.stating(day.day, statement))
  return "1 second"
})

/** Returns the account count and the root over a day's blocks. */
export const sumsOf = (
  blocks: ReadonlyArray<Block>
): { readonly accounts: number; readonly root: SumTree.SumNode } => ({
  accounts: blocks.reduce((accounts, { width }) => accounts + width, 0),
  root: SumTree.rootOf(blocks)
})

/** Builds the block of these accounts. */
export const blockOf = (salt: string, day: string, n: number, balances: ReadonlyArray<ClosingBalance>): Block => ({
  n,
  first: balances[0]!.account,
  last: balances.at(-1)!.account,
  width: balances.length,
  ...SumTree.rootOf(leavesOf(salt, day, balances))
})

/** Creates an effect that returns the next block's balances each time it runs. The last block has fewer than `tileWidth`. */
const balancesAfter = (sql: SqlClient, seq: number, account: number) => {
  let after = account
  let isEnd = false
  const kept: Array<ClosingBalance> = []
  return Effect.gen(function* (): Effect.fn.Return<ReadonlyArray<ClosingBalance>, SqlError> {
    while (kept.length < tileWidth && !isEnd) {
      const page = yield* closingBalances(sql, seq, { after, last: Number.MAX_SAFE_INTEGER, most: tileWidth })
      kept.push(...page.balances)
      isEnd = page.next === undefined
      after = page.next ?? after
    }
    return kept.splice(0, tileWidth)
  })
}

// ---- proofs -------------------------------------------------------------------------------------------------------------

const proofOf = ({ sql }: Parts): LiabilitiesContract["proof"] =>
  Effect.fn("Liabilities.proof")(function* (account, { day, statement }) {
    const number = yield* accountNumber(sql, account)
    const stated = yield* Rows.statedDay(sql, day)
    const head = yield* Head.readShort(sql)
    if (number === undefined || stated === undefined || head === undefined) return undefined
    const blocks = yield* Rows.blocks(sql, day)
    const block = blocks.findLast(({ first }) => first <= number)
    if (block === undefined || block.last < number) return undefined
    const balances: Array<ClosingBalance> = []
    for (let after: number | undefined = block.first - 1; after !== undefined;) {
      const page: Effect.Effect.Success<ReturnType<typeof closingBalances>> = yield* closingBalances(
        sql,
        stated.entry,
        { after, last: block.last, most: tileWidth }
      )
      balances.push(...page.balances)
      after = page.next
      yield* turn
    }
    const leaves = leavesOf(head.salt, day, balances)
    const index = leaves.findIndex((leaf) => leaf.account === number)
    if (index < 0) return undefined
    const path = [...SumTree.pathOf(leaves, index), ...SumTree.pathOf(blocks, block.n)]
    return {
      day,
      statement,
      leaf: leaves[index]!.text,
      index: block.n * tileWidth + index,
      proof: Buffer.concat(path.map(SumTree.bytesOf)).toString("base64")
    }
  }, Effect.orDie)

/**
 * The log of charges: every ledger entry is a leaf of an append-only Merkle tree in C2SP formats (tlog-tiles, tlog-checkpoint). Anyone with a receipt
 * can verify that the entry is in the log and that existing log entries never change. A loop adds entries after their commit.
 *
 * Where the specification is silent:
 * - A leaf's index is the rank of its entry among all entries by row. PostgreSQL's row numbers have gaps, and a row may commit after a later row.
 *   Entries before the first gap are final. A permanent gap is skipped once the safe horizon is past it (`books/ledger/write/SafeHorizon`).
 * - The log takes its permanent name from the `public_url` at its creation. `reseal` retires its signing key. Earlier checkpoints remain valid under
 *   the retired key.
 * - The salt key is stored in plain text, so that `verify` needs no secret. The database contains the entries themselves.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Clock, Context, Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import type { KeyObject } from "node:crypto"
import * as Loop from "../../kernel/Loop.ts"
import { turn } from "../../kernel/Pieces.ts"
import { ServiceInfo } from "../../kernel/ServiceInfo.ts"
import { DeploymentSecret } from "../../storage/secret/DeploymentSecret.ts"
import type { DeploymentSecretContract } from "../../storage/secret/DeploymentSecret.ts"
import { entriesAfter, lastEntry } from "../ledger/rows/EntriesInOrder.ts"
import type { LoggedEntry } from "../ledger/rows/EntriesInOrder.ts"
import type { BooksUnavailable } from "../ledger/rules/Problems.ts"
import type { Ending } from "../ledger/write/Ending.ts"
import * as SafeHorizon from "../ledger/write/SafeHorizon.ts"
import { tryWrite } from "../ledger/write/Statements.ts"
import { Writer } from "../ledger/write/Writer.ts"
import type { WriterContract } from "../ledger/write/Writer.ts"
import * as Forms from "./Forms.ts"
import * as Head from "./Head.ts"
import { leafOf } from "./Leaf.ts"
import type { LeafForm } from "./Leaf.ts"
import * as Note from "./Note.ts"
import type { NoteKey } from "./Note.ts"
import * as Published from "./Published.ts"
import { LogSettings } from "./Settings.ts"
import type { LogFacts } from "./Settings.ts"
import * as Tree from "./Tree.ts"
import type { Edge, TileKey } from "./Tree.ts"

/** The proof that an entry is in the log. */
export interface LogReceipt {
  /** The leaf text (`Leaf`). */
  readonly leaf: string
  readonly index: number
  /** The inclusion proof's hashes, from the leaf upwards, concatenated and encoded as base64. */
  readonly proof: string
  readonly checkpoint: string
}

export interface ChargeLogContract {
  /** Adds final entries, up to a limit. Returns the number of added entries. */
  readonly add: Effect.Effect<number, BooksUnavailable>
  /** The job that adds entries. `layerJobs` runs it. */
  readonly job: Loop.Job
  /** The published checkpoint, which is the newest one unless witnesses are configured (`Cosigning`); `undefined` before the first. */
  readonly checkpoint: Effect.Effect<string | undefined>
  /** Returns the first `width` hashes of a tile; `undefined` if it has fewer or does not exist. */
  readonly tile: (key: TileKey, width: number) => Effect.Effect<Uint8Array | undefined>
  /** Signs a statement as a note. The text must not be a checkpoint. Returns `undefined` until the log and its key exist. */
  readonly sign: (text: string) => Effect.Effect<string | undefined, BooksUnavailable>
  /** The log's verifier keys, current and retired, newest first. */
  readonly keys: Effect.Effect<ReadonlyArray<string>>
  /** Returns the proof for an entry; `undefined` if the entry is not in the published log yet. */
  readonly receipt: (entry: LoggedEntry) => Effect.Effect<LogReceipt | undefined>
}

export class ChargeLog extends Context.Tag("tollgate/log/ChargeLog")<ChargeLog, ChargeLogContract>() {
  static readonly layer = Layer.suspend(() => Layer.effect(ChargeLog, make))
  static readonly layerJobs = Loop.layer(ChargeLog, ({ job }) => [job])
}

/** The number of entries per read (which takes a few milliseconds), reads per transaction, and transactions per iteration, each at most. */
const entriesInPiece = 512
const piecesInTransaction = 16
const transactionsMax = 32

/** The pauses after an iteration that reached its limit, and after any other iteration. */
const pauseBusy = "100 millis"
const pauseIdle = "1 second"

interface Parts {
  readonly sql: SqlClient
  readonly writer: WriterContract
  readonly secret: DeploymentSecretContract
  readonly origin: string
  readonly settings: LogFacts
  readonly state: State
}

interface State {
  /** The last final row according to the safe horizon. */
  settled: number
  /** The row before the gap where the previous iteration stopped. */
  gap: number | undefined
  /** The cached unsealed signing key. */
  signer: { readonly key: string; readonly secret: KeyObject } | undefined
}

const make = Effect.gen(function* () {
  const { public_url } = yield* ServiceInfo
  const parts: Parts = {
    sql: yield* SqlClient,
    writer: yield* Writer,
    secret: yield* DeploymentSecret,
    // A key name must not contain spaces or plus signs.
    origin: public_url.replace(/^[a-z]+:\/\//i, "").replace(/[\s+]+/g, "-"),
    settings: yield* LogSettings,
    state: { settled: 0, gap: undefined, signer: undefined }
  }
  const { sql } = parts
  const add = addTo(parts)
  return {
    add,
    job: {
      name: "log",
      turn: Effect.map(add, (added) =>
        added >= entriesInPiece * piecesInTransaction * transactionsMax ? pauseBusy : pauseIdle
      )
    },
    checkpoint: Effect.orDie(
      Effect.flatMap(publishedBy(parts), (published) =>
        published === undefined
          ? Effect.map(Head.readShort(sql), (head) => head?.checkpoint)
          : Effect.succeed(published.checkpoint)
      )
    ),
    tile: (key, width) =>
      Effect.orDie(
        Effect.map(Head.tile(sql, key), (hashes) =>
          hashes === undefined || Head.widthOf(hashes) < width ? undefined : hashes.subarray(0, width * Tree.hashSize)
        )
      ),
    sign: signOf(parts),
    keys: Effect.orDie(
      Effect.flatMap(Head.readShort(sql), (head) =>
        head === undefined
          ? Effect.succeed([])
          : Effect.map(Head.keys(sql, head.origin), (keys) => keys.map(Note.verifierKey))
      )
    ),
    receipt: receiptOf(parts)
  } satisfies ChargeLogContract
})

// ---- adding -------------------------------------------------------------------------------------------------------------

const addTo = (parts: Parts): ChargeLogContract["add"] =>
  Effect.gen(function* () {
    const { sql, writer } = parts
    let added = 0
    for (let i = 0; i < transactionsMax; i++) {
      const head = (yield* Effect.orDie(Head.read(sql))) ?? (yield* begin(parts))
      // Another node is creating the log.
      if (head === undefined) return added
      const signer = yield* signerOf(parts, head.origin)
      if (signer === undefined) return added
      const form = head.form_first !== null || (yield* Effect.orDie(Forms.mayBegin(sql))) ? 2 : 1
      const piece = yield* Effect.orDie(pieceAfter(parts, head, form))
      if (piece.entries === 0 && Note.opened(head.checkpoint, [signer.key]) !== undefined) return added
      const checkpoint = checkpointOf(head.origin, piece.edge, signer)
      const { edge, entries, first, last, tiles } = piece
      const moved = yield* tryWrite(
        writer,
        Head.moving(head, { size: edge.size, entry: last, checkpoint }),
        ...[...tiles.values()].map(({ first, tile }) => Head.writing(tile, first)),
        ...(form === 1 || first === undefined ? [] : [Forms.extending({ first: head.form_first ?? first, last })])
      )
      // Another node has moved the head.
      if (!moved) return added
      added += entries
      if (entries < entriesInPiece * piecesInTransaction) return added
    }
    return added
  })

interface Signer {
  readonly key: NoteKey
  readonly secret: KeyObject
}

const checkpointOf = (origin: string, edge: Edge, { key, secret }: Signer): string =>
  Note.signed(Note.checkpointText({ origin, size: edge.size, root: Tree.rootOf(edge) }), key, secret)

/** Creates the empty log with its first key, unless another node has. Returns the head; `undefined` if it is not visible yet. */
const begin = Effect.fnUntraced(function* ({ origin, secret, sql, writer }: Parts) {
  const { public: key, secret: made } = Note.newKey()
  const sealed = yield* secret.seal(made)
  const signer = { key: { name: origin, public: key }, secret: Note.secretKey(made) }
  const checkpoint = checkpointOf(origin, Tree.emptyEdge, signer)
  const now = yield* Clock.currentTimeMillis
  const salt = randomBytes(32).toString("base64url")
  yield* tryWrite(writer, Head.making({ origin, salt, checkpoint }), Head.addingKey(key, sealed, now))
  return yield* Effect.orDie(Head.read(sql))
})

/** Returns the signing key. If there is none, because the deployment's secret was lost, adds one for the next call and returns `undefined`. */
const signerOf = Effect.fnUntraced(function* ({ secret, sql, state, writer }: Parts, origin: string) {
  const found = yield* Effect.orDie(Head.signingKey(sql))
  if (found === undefined) {
    const made = Note.newKey()
    const sealed = yield* secret.seal(made.secret)
    yield* tryWrite(writer, Head.addingKey(made.public, sealed, yield* Clock.currentTimeMillis))
    return undefined
  }
  if (state.signer?.key !== found.public) {
    state.signer = { key: found.public, secret: Note.secretKey(yield* secret.unseal(found.sealed)) }
  }
  return { key: { name: origin, public: found.public }, secret: state.signer.secret } satisfies Signer
})

const signOf = (parts: Parts): ChargeLogContract["sign"] =>
  Effect.fnUntraced(function* (text) {
    const head = yield* Effect.orDie(Head.readShort(parts.sql))
    const signer = head && (yield* signerOf(parts, head.origin))
    return signer && Note.signed(text, signer.key, signer.secret)
  })

interface Piece {
  readonly edge: Edge
  readonly entries: number
  /** The first entry's row; `undefined` if there are no entries. */
  readonly first: number | undefined
  /** The last entry's row, or that of the log's newest entry if there are no entries. */
  readonly last: number
  /** The changed tiles by level and index. `first` is the row of the first entry of a new tile on level 0, otherwise `null`. */
  readonly tiles: ReadonlyMap<string, { readonly tile: Tree.Tile; readonly first: number | null }>
}

/** Reads the next entries as leaves, for at most one transaction. */
const pieceAfter = Effect.fnUntraced(function* (
  parts: Parts,
  head: Head.Head,
  form: LeafForm
): Effect.fn.Return<Piece, SqlError> {
  let { edge, entry: last } = head
  let first: number | undefined
  const tiles = new Map<string, { readonly tile: Tree.Tile; readonly first: number | null }>()
  for (let i = 0; i < piecesInTransaction; i++) {
    if (i > 0) yield* turn
    const entries = yield* finalAfter(parts, last)
    if (entries.length === 0) break
    first ??= entries[0]!.seq
    const hashes = entries.map((entry) => Tree.leafHash(leafOf(head.salt, entry, form)))
    const made = Tree.append(edge, Buffer.concat(hashes))
    for (const tile of made.changed) {
      const key = `${tile.level}/${tile.n}`
      const first = tile.level > 0 ? undefined : entries[tile.n * Tree.tileWidth - edge.size]?.seq
      tiles.set(key, { tile, first: first ?? tiles.get(key)?.first ?? null })
    }
    edge = made.edge
    last = entries.at(-1)!.seq
    if (entries.length < entriesInPiece) break
  }
  return { edge, entries: edge.size - head.edge.size, first, last, tiles }
})

/** Reads the next final entries after the row `last`. No later commit can add a row before a final entry. */
const finalAfter = (parts: Parts, last: number): Effect.Effect<ReadonlyArray<LoggedEntry>, SqlError> => {
  const { sql } = parts
  const read = entriesAfter(sql, last, Number.MAX_SAFE_INTEGER, entriesInPiece)
  return sql.onDialectOrElse({
    pg: () => Effect.flatMap(read, (entries) => withoutGaps(parts, last, entries)),
    orElse: () => read
  })
}

/** Returns the entries before the first gap between rows. If the previous iteration also stopped at this gap, finds the safe horizon. */
const withoutGaps = Effect.fnUntraced(function* (
  { sql, state }: Parts,
  last: number,
  entries: ReadonlyArray<LoggedEntry>
) {
  const final = (found: ReadonlyArray<LoggedEntry>): ReadonlyArray<LoggedEntry> => {
    let before = last
    const gap = found.findIndex(({ seq }) => {
      const isFinal = seq <= state.settled || seq === before + 1
      before = seq
      return !isFinal
    })
    return gap < 0 ? found : found.slice(0, gap)
  }
  const found = final(entries)
  if (found.length > 0 || entries.length === 0) return found
  if (state.gap !== last) {
    state.gap = last
    return found
  }
  const horizon = yield* SafeHorizon.find(sql, 0)
  if (horizon === undefined) return found
  // The limit must be an existing row, because after a crash a sequence may repeat the numbers after the last row.
  state.settled = Math.min(horizon.entry, yield* lastEntry(sql))
  return final(yield* entriesAfter(sql, last, state.settled, entriesInPiece))
})

// ---- reading ------------------------------------------------------------------------------------------------------------

/** Reads the checkpoint published for witnesses; `undefined` before the first, or if no witnesses are configured. */
const publishedBy = ({ settings, sql }: Parts) =>
  settings.witnesses.length === 0 ? Effect.succeed(undefined) : Published.read(sql)

const receiptOf = (parts: Parts): ChargeLogContract["receipt"] =>
  Effect.fn("ChargeLog.receipt")(function* (entry) {
    const { settings, sql } = parts
    const published = yield* publishedBy(parts)
    const head = yield* Head.readShort(sql)
    const shown = settings.witnesses.length === 0 ? head : published
    if (head === undefined || shown === undefined || entry.seq > shown.entry) return undefined
    const index = (yield* Head.entriesUpTo(sql, entry.seq)) - 1
    const proof = yield* Head.roots(sql, Tree.inclusionRanges(index, shown.size))
    return {
      leaf: leafOf(head.salt, entry, Forms.formIn(yield* Forms.ranges(sql), entry.seq)),
      index,
      proof: Buffer.concat(proof).toString("base64"),
      checkpoint: shown.checkpoint
    }
  }, Effect.orDie)

/** Discards the private key, because a new secret cannot open it. The log continues with a new key. The old public key remains published. */
export const logKeysEnd: Ending = {
  count: (sql) => sql`SELECT count(*) AS n FROM tollgate_log_keys WHERE sealed IS NOT NULL`,
  statements: () => [{ text: "UPDATE tollgate_log_keys SET sealed = NULL WHERE sealed IS NOT NULL", params: [] }],
  notice: () => "the signing key of the log of charges is replaced: earlier checkpoints remain valid under the old key"
}

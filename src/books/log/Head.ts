/** Reads and writes the log's rows: its head, tiles and keys. */
import type { SqlClient } from "@effect/sql/SqlClient"
import type { SqlError } from "@effect/sql/SqlError"
import { Effect } from "effect"
import type { Range } from "../../kernel/Pieces.ts"
import { entriesBetween } from "../ledger/rows/EntriesInOrder.ts"
import type { Statement } from "../ledger/rules/Transaction.ts"
import type { NoteKey } from "./Note.ts"
import { hashSize, rootsOf, spanOf, tilesOf, tileWidth } from "./Tree.ts"
import type { Edge, Tile, TileKey } from "./Tree.ts"

/** The levels of tiles. They suffice for 2^48 entries. */
export const levels: ReadonlyArray<number> = [0, 1, 2, 3, 4, 5]

/** SQL for the levels, each with the number of leaves below a full tile. */
export const spans = `(${levels.map((level) => `SELECT ${level} AS level, ${spanOf(level)} AS span`).join(" UNION ALL ")})`

export interface Head {
  /** The log's permanent name. */
  readonly origin: string
  /** The key for leaf salts. */
  readonly salt: string
  /** The row of the log's newest entry. */
  readonly entry: number
  readonly checkpoint: string
  /** The first row of the form 2 range that ends at `entry` (`Forms`); `null` if the newest leaf has form 1. */
  readonly form_first: number | null
  readonly edge: Edge
}

interface HeadRow {
  readonly origin: string
  readonly salt: string
  readonly size: number
  readonly entry: number
  readonly checkpoint: string
  readonly form_first: number | null
  readonly hashes: Uint8Array | null
}

/** Selects the head and its tiles in one statement, so the tiles belong to the head. */
const selectHead = `SELECT h.origin, h.salt, h.size, h.entry, h.checkpoint,
    (SELECT MAX(f.first) FROM tollgate_log_forms f WHERE f.last = h.entry) AS form_first, t.hashes
  FROM tollgate_log_head h
  JOIN ${spans} v ON true LEFT JOIN tollgate_log_tiles t ON t.level = v.level AND t.n = h.size / v.span ORDER BY v.level`

/** Reads the head; `undefined` before the log's first checkpoint. */
export const read = (sql: SqlClient): Effect.Effect<Head | undefined, SqlError> =>
  Effect.map(sql.unsafe<HeadRow>(selectHead), (rows) => {
    const [row] = rows
    if (row === undefined) return undefined
    const { checkpoint, entry, form_first, origin, salt, size } = row
    return {
      origin,
      salt,
      entry,
      checkpoint,
      form_first,
      edge: { size, tiles: rows.map(({ hashes }) => hashes ?? new Uint8Array(0)) }
    }
  })

/** The log's head without its tiles. */
export interface ShortHead extends Pick<Head, "origin" | "salt" | "entry" | "checkpoint"> {
  readonly size: number
}

/** Reads the log's head without its tiles; `undefined` before the log's first checkpoint. */
export const readShort = (sql: SqlClient): Effect.Effect<ShortHead | undefined, SqlError> =>
  Effect.map(sql<ShortHead>`SELECT origin, salt, size, entry, checkpoint FROM tollgate_log_head`, ([row]) => row)

/** Reads a tile's hashes; `undefined` if the tile does not exist. */
export const tile = (sql: SqlClient, { level, n }: TileKey): Effect.Effect<Uint8Array | undefined, SqlError> =>
  Effect.map(
    sql<{
      readonly hashes: Uint8Array
    }>`SELECT hashes FROM tollgate_log_tiles WHERE level = ${level} AND n = ${n}`,
    ([row]) => row?.hashes
  )

/** Computes the roots of leaf ranges in the log. */
export const roots = Effect.fnUntraced(function* (
  sql: SqlClient,
  ranges: ReadonlyArray<Range>
): Effect.fn.Return<ReadonlyArray<Buffer>, SqlError> {
  const tiles = new Map<string, Uint8Array>()
  for (const key of tilesOf(ranges)) tiles.set(`${key.level}/${key.n}`, (yield* tile(sql, key))!)
  return rootsOf(ranges, ({ level, n }) => tiles.get(`${level}/${n}`)!)
})

/** Finds the tile of level 0 that contains the entry in the row `seq`, and the row of the tile's first entry. */
export const tileWith = (sql: SqlClient, seq: number) =>
  Effect.map(
    sql<{ readonly n: number; readonly first: number }>`SELECT n, first FROM tollgate_log_tiles
      WHERE first <= ${seq} ORDER BY first DESC LIMIT 1`,
    ([row]) => row
  )

/** Counts the entries up to the row `seq`, which must be in the log. */
export const entriesUpTo = Effect.fnUntraced(function* (
  sql: SqlClient,
  seq: number
): Effect.fn.Return<number, SqlError> {
  const tile = yield* tileWith(sql, seq)
  return tile === undefined ? 0 : tile.n * tileWidth + (yield* entriesBetween(sql, tile.first, seq + 1))
})

// ---- writing ------------------------------------------------------------------------------------------------------------

/** Builds the statement that moves the head. It conflicts if another node has moved the head. */
export const moving = (
  before: Pick<Head, "checkpoint">,
  after: Pick<Head, "checkpoint" | "entry"> & { readonly size: number }
): Statement => ({
  text: `UPDATE tollgate_log_head SET size = ?, entry = ?, checkpoint = ? WHERE id = 1 AND checkpoint = ? RETURNING id`,
  params: [after.size, after.entry, after.checkpoint, before.checkpoint],
  rows: 1
})

/** Builds the statement that writes a new or wider tile. `first` is the row of the first entry of a new tile on level 0, otherwise `null`. */
export const writing = ({ hashes, level, n }: Tile, first: number | null): Statement => ({
  text: `INSERT INTO tollgate_log_tiles (level, n, hashes, first) VALUES (?, ?, ?, ?)
    ON CONFLICT (level, n) DO UPDATE SET hashes = excluded.hashes`,
  params: [level, n, hashes, first]
})

/** Builds the statement that creates the log. It conflicts if the log exists. */
export const making = ({ checkpoint, origin, salt }: Pick<Head, "checkpoint" | "origin" | "salt">): Statement => ({
  text: `INSERT INTO tollgate_log_head (id, origin, salt, size, entry, checkpoint) VALUES (1, ?, ?, 0, 0, ?)
    ON CONFLICT DO NOTHING RETURNING id`,
  params: [origin, salt, checkpoint],
  rows: 1
})

// ---- keys ---------------------------------------------------------------------------------------------------------------

/** Reads the sealed signing key; `undefined` if there is none. */
export const signingKey = (sql: SqlClient) =>
  Effect.map(
    sql<{ readonly public: string; readonly sealed: string }>`SELECT public, sealed FROM tollgate_log_keys
      WHERE sealed IS NOT NULL ORDER BY created_at DESC, public LIMIT 1`,
    ([row]) => row
  )

/** Builds the statement that adds the signing key. It conflicts if there is one. */
export const addingKey = (key: string, sealed: string, now: number): Statement => ({
  text: `INSERT INTO tollgate_log_keys (public, sealed, created_at)
    SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT)
    WHERE NOT EXISTS (SELECT 1 FROM tollgate_log_keys WHERE sealed IS NOT NULL) RETURNING public`,
  params: [key, sealed, now],
  rows: 1
})

/** Reads all signing keys, current and retired, newest first. `name` is the log's name. */
export const keys = (sql: SqlClient, name: string): Effect.Effect<ReadonlyArray<NoteKey>, SqlError> =>
  Effect.map(
    sql<{ readonly public: string }>`SELECT public FROM tollgate_log_keys ORDER BY created_at DESC, public`,
    (rows) => rows.map((row) => ({ name, public: row.public }))
  )

/** Returns the number of hashes in a tile. */
export const widthOf = (hashes: Uint8Array): number => hashes.length / hashSize

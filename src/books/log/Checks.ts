/** Invariants of the log: each entry up to the head has a leaf, there are no other leaves, and the checkpoints are valid. */
import type { SqlClient } from "@effect/sql/SqlClient"
import { Effect } from "effect"
import { sliceSize, turn } from "../../kernel/Pieces.ts"
import { entriesAfter } from "../ledger/rows/EntriesInOrder.ts"
import type { LoggedEntry } from "../ledger/rows/EntriesInOrder.ts"
import { findingsMax } from "../ledger/rules/Check.ts"
import type { Check, CheckRow } from "../ledger/rules/Check.ts"
import * as Forms from "./Forms.ts"
import * as Head from "./Head.ts"
import { leafOf } from "./Leaf.ts"
import * as Note from "./Note.ts"
import * as Published from "./Published.ts"
import * as Tree from "./Tree.ts"
import type { Edge } from "./Tree.ts"

/**
 * Selects tiles that do not belong to the head: after its edge, or on a level that no tree reaches. A single statement reads the head and the tiles
 * in one snapshot.
 */
const selectForeign = `SELECT CAST(t.level AS TEXT) AS level, CAST(t.n AS TEXT) AS n
  FROM tollgate_log_tiles t LEFT JOIN tollgate_log_head h ON true LEFT JOIN ${Head.spans} v ON v.level = t.level
  WHERE v.level IS NULL OR h.id IS NULL OR t.n < 0 OR t.n > h.size / v.span
    OR (t.n = h.size / v.span AND (h.size / (v.span / ${Tree.tileWidth})) % ${Tree.tileWidth} = 0)
  LIMIT ${findingsMax}`

const foreign = (sql: SqlClient) =>
  Effect.map(sql.unsafe<{ readonly level: string; readonly n: string }>(selectForeign), (rows) =>
    rows.map(({ level, n }): CheckRow => ({ id: `tile ${level}/${n}`, expected: "absent", found: "present" }))
  )

/** Checks the partial tiles at the edge, and the checkpoint's text and signature. */
const headFaults = Effect.fnUntraced(function* (sql: SqlClient) {
  const faults: Array<CheckRow> = [...(yield* foreign(sql))]
  const head = yield* Head.read(sql)
  if (head === undefined) return faults
  const { checkpoint, edge, origin } = head
  for (const [level, tile] of edge.tiles.entries()) {
    const width = Tree.edgeWidth(edge.size, level)
    if (Head.widthOf(tile) === width) continue
    faults.push({
      id: `the last tile of level ${level}`,
      expected: `${width} hashes`,
      found: `${Head.widthOf(tile)} hashes`
    })
  }
  const keys = yield* Head.keys(sql, origin)
  const text = Note.opened(checkpoint, keys)
  const due = faults.length > 0 ? undefined : Note.checkpointText({ origin, size: edge.size, root: Tree.rootOf(edge) })
  if (text === undefined)
    faults.push({ id: "the checkpoint", expected: "signed", found: "not signed by a key of the log" })
  else if (due !== undefined && text !== due) {
    faults.push({ id: "the checkpoint", expected: JSON.stringify(due), found: JSON.stringify(text) })
  }
  return faults
})

/** Computes the log's root at this size from the stored tiles, which may be damaged. */
const rootAt = Effect.fnUntraced(function* (sql: SqlClient, size: number) {
  if (size === 0) return Tree.rootOf(Tree.emptyEdge)
  const range = [{ from: 0, to: size }]
  const tiles = new Map<string, Uint8Array>()
  for (const key of Tree.tilesOf(range))
    tiles.set(`${key.level}/${key.n}`, (yield* Head.tile(sql, key)) ?? new Uint8Array(0))
  return Tree.rootsOf(range, ({ level, n }) => tiles.get(`${level}/${n}`)!)[0]!
})

/** Checks the published checkpoint's text, signatures and cosignatures. */
const publishedFaults = Effect.fnUntraced(function* (sql: SqlClient) {
  const faults: Array<CheckRow> = []
  const published = yield* Published.read(sql)
  const head = yield* Head.readShort(sql)
  if (published === undefined) return faults
  const fault = (expected: string, found: string) => faults.push({ id: "the published checkpoint", expected, found })
  const { checkpoint, cosignatures, entry, size } = published
  if (head === undefined || size > head.size || entry > head.entry) {
    fault(`of at most ${head?.size ?? 0} entries`, `of ${size} entries, the last in row ${entry}`)
    return faults
  }
  const text = Note.opened(checkpoint, yield* Head.keys(sql, head.origin))
  if (text === undefined) {
    fault("signed", "not signed by a key of the log")
    return faults
  }
  const due = Note.checkpointText({ origin: head.origin, size, root: yield* rootAt(sql, size) })
  if (text !== due) fault(JSON.stringify(due), JSON.stringify(text))
  const rows = yield* Head.entriesUpTo(sql, entry)
  if (rows !== size) fault(`of the ${rows} entries up to row ${entry}`, `of ${size} entries`)
  const witnesses = (yield* Published.witnesses(sql)).flatMap(({ witness }) => Note.cosignerOf(witness) ?? [])
  const isValid = (line: string) => witnesses.some((key) => Note.cosignedAt(line, text, key) !== undefined)
  // The first line is the log's own.
  const valid = Note.partsOf(checkpoint)!.lines.slice(1).filter(isValid).length
  const lines = Note.partsOf(checkpoint)!.lines.length - 1
  if (valid !== cosignatures || lines !== cosignatures)
    fault(`cosigned ${cosignatures} times`, `cosigned ${valid} times, with ${lines} cosignatures`)
  return faults
})

/** Selects the witnesses that contradict the log. */
const selectConflicts = `SELECT witness AS id, 'a cosignature' AS expected, conflict AS found
  FROM tollgate_log_witnesses WHERE conflict IS NOT NULL`

const inWords = (hash: Uint8Array | undefined): string =>
  hash === undefined || hash.length === 0 ? "nothing" : Buffer.from(hash).toString("base64")

const hashAt = (tile: Uint8Array, i: number): Uint8Array => tile.subarray(i * Tree.hashSize, (i + 1) * Tree.hashSize)

/** Compares tiles computed from the entries with the stored ones, and collects the differences. */
const comparer = (sql: SqlClient, head: Head.Head, faults: Array<CheckRow>) => {
  const compare = ({ hashes, level, n }: Tree.Tile, stored: Uint8Array): void => {
    if (Buffer.compare(hashes, stored) === 0) return
    for (let i = 0; i < Math.max(Head.widthOf(hashes), Math.ceil(Head.widthOf(stored))); i++) {
      const [expected, found] = [inWords(hashAt(hashes, i)), inWords(hashAt(stored, i))]
      if (expected !== found) faults.push({ id: `hash ${n * Tree.tileWidth + i} of level ${level}`, expected, found })
    }
  }
  const full = Effect.fnUntraced(function* (tile: Tree.Tile) {
    if (tile.hashes.length === Tree.tileSize) compare(tile, (yield* Head.tile(sql, tile)) ?? new Uint8Array(0))
  })
  const last = ({ size, tiles }: Edge): void => {
    for (const level of Head.levels) {
      const hashes = tiles[level] ?? new Uint8Array(0)
      compare({ level, n: Math.floor(size / Tree.spanOf(level)), hashes }, head.edge.tiles[level]!)
    }
  }
  return { full, last }
}

/** Checks the stored row of a tile's first entry, which leaf lookups use. */
const firstFault = Effect.fnUntraced(function* (sql: SqlClient, { seq }: LoggedEntry, index: number) {
  const n = index / Tree.tileWidth
  const first = yield* Head.tileWith(sql, seq)
  return first?.n === n && first.first === seq
    ? []
    : [{ id: `the first entry of tile 0/${n}`, expected: `row ${seq}`, found: `row ${first?.first ?? "unknown"}` }]
})

/** Reports form 2 ranges whose first or last row is not a log entry. */
const rangeFaults = (ranges: ReadonlyArray<Forms.FormRange>, missing: ReadonlySet<number>): ReadonlyArray<CheckRow> =>
  ranges
    .filter(({ first, last }) => missing.has(first) || missing.has(last))
    .map(({ first, last }) => ({
      id: "a range of leaves of form 2",
      expected: "from an entry to an entry",
      found: `from row ${first} to row ${last}`
    }))

/** Recomputes the tree of all entries up to the head. These entries and full tiles never change, so the check works while more are added. */
const treeFaults = Effect.fnUntraced(function* (sql: SqlClient) {
  const faults: Array<CheckRow> = []
  const head = yield* Head.read(sql)
  if (head === undefined) return faults
  const { full, last } = comparer(sql, head, faults)
  const ranges = yield* Forms.ranges(sql)
  const missing = new Set(ranges.flatMap(({ first, last }) => [first, last]))
  let edge = Tree.emptyEdge
  let seq = 0
  for (;;) {
    const entries = yield* entriesAfter(sql, seq, head.entry, sliceSize)
    if (entries.length === 0) break
    const texts = entries.map((entry) => leafOf(head.salt, entry, Forms.formIn(ranges, entry.seq)))
    const made = Tree.append(edge, Buffer.concat(texts.map(Tree.leafHash)))
    for (const tile of made.changed) yield* full(tile)
    for (const [i, entry] of entries.entries()) {
      const index = edge.size + i
      missing.delete(entry.seq)
      if (index % Tree.tileWidth === 0) faults.push(...(yield* firstFault(sql, entry, index)))
    }
    edge = made.edge
    seq = entries.at(-1)!.seq
    if (faults.length >= findingsMax) return faults.slice(0, findingsMax)
    yield* turn
  }
  if (seq !== head.entry) faults.push({ id: "the newest entry", expected: `row ${seq}`, found: `row ${head.entry}` })
  if (edge.size !== head.edge.size)
    faults.push({ id: "the size", expected: `${edge.size} entries`, found: `${head.edge.size} entries` })
  last(edge)
  const newest = yield* Head.readShort(sql)
  // The service might have added entries since the head was read.
  for (const row of missing) if (row > head.entry && row <= (newest?.entry ?? 0)) missing.delete(row)
  faults.push(...rangeFaults(ranges, missing))
  return faults.slice(0, findingsMax)
})

const sentence = ({ expected, found, id }: CheckRow): string =>
  `in the log of charges, ${id} should be ${expected}, but is ${found}`

export const checks: ReadonlyArray<Check> = [
  { name: "the checkpoint of the log is signed and has its root", isShort: true, find: headFaults, sentence },
  { name: "the published checkpoint is in the log and cosigned", isShort: true, find: publishedFaults, sentence },
  {
    name: "no witness contradicts the log",
    isShort: true,
    query: selectConflicts,
    sentence: ({ found, id }) => `the witness ${id} contradicts the log of charges: ${found}`
  },
  { name: "the log has each entry and nothing else", find: treeFaults, sentence }
]

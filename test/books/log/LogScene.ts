/** The log of charges over the database of a scene. */
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Layer } from "effect"
import { ServiceInfo } from "../../../src/kernel/ServiceInfo.ts"
import { entriesAfter } from "../../../src/books/ledger/rows/EntriesInOrder.ts"
import { Writer } from "../../../src/books/ledger/write/Writer.ts"
import { ChargeLog } from "../../../src/books/log/ChargeLog.ts"
import * as Head from "../../../src/books/log/Head.ts"
import { leafOf } from "../../../src/books/log/Leaf.ts"
import * as Note from "../../../src/books/log/Note.ts"
import * as Tree from "../../../src/books/log/Tree.ts"
import * as DeploymentSecret from "../../../src/storage/secret/DeploymentSecret.ts"
import * as Scene from "../../money/usage/Scene.ts"

/** A log that names itself after this address, with a secret of equal bytes. */
export const logOf = (public_url: string, secret = 1) =>
  Layer.fresh(ChargeLog.layer).pipe(
    Layer.provide(ServiceInfo.layer({ service_name: "Tollgate", key_prefix: "svc", public_url })),
    Layer.provide(DeploymentSecret.layer(new Uint8Array(32).fill(secret)))
  )

export const log = logOf("https://pay.example.com/gate")

export const layer = Layer.provideMerge(log, Scene.layer)

/** Adds all entries to an existing log as the versions before form 2 did: they know neither this form nor its ranges. */
export const addAsBefore = Effect.gen(function* () {
  const sql = yield* SqlClient
  const head = (yield* Head.read(sql))!
  const entries = yield* entriesAfter(sql, head.entry, Number.MAX_SAFE_INTEGER, 1_000_000)
  const leaves = entries.map((entry) => Tree.leafHash(leafOf(head.salt, entry, 1)))
  const { changed, edge } = Tree.append(head.edge, Buffer.concat(leaves))
  const text = Note.checkpointText({ origin: head.origin, size: edge.size, root: Tree.rootOf(edge) })
  const checkpoint = (yield* Effect.flatMap(ChargeLog, ({ sign }) => sign(text)))!
  const firstOf = ({ level, n }: Tree.Tile) =>
    level > 0 ? null : (entries[n * Tree.tileWidth - head.edge.size]?.seq ?? null)
  yield* Effect.flatMap(Writer, ({ submit }) =>
    submit({
      postings: [],
      statements: [
        Head.moving(head, { size: edge.size, entry: entries.at(-1)!.seq, checkpoint }),
        ...changed.map((tile) => Head.writing(tile, firstOf(tile)))
      ]
    })
  )
  return entries.length
})

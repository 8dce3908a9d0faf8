/**
 * The owner of a SQLite file that several workers serve (`serve --workers`). It holds the file's lock and runs the writer thread and all loops. It
 * serves no requests itself.
 */
import { Effect, Layer, Runtime } from "effect"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { Writer } from "../../books/ledger/write/Writer.ts"
import type { Door } from "../../books/ledger/write/Thread.ts"
import type { Address } from "../../http/server/Address.ts"
import { Counts } from "../../kernel/Counts.ts"
import { Holds } from "../../kernel/Holds.ts"
import type { ConfigProblem } from "../../kernel/Setting.ts"
import { Siblings } from "../../operations/ops/Siblings.ts"
import type { ReloadRefused } from "../../operations/operator/Problems.ts"
import type { Reloaded } from "../../operations/operator/Reload.ts"
import { Peers } from "../../storage/engine/Peers.ts"
import * as Sql from "../../storage/sqlite/Sql.ts"
import * as Config from "../Config.ts"
import type { ConfigFile } from "../Config.ts"
import type { Together } from "../Deployment.ts"
import * as Fleet from "./Fleet.ts"
import * as Hub from "./Hub.ts"
import * as Subjects from "./Subjects.ts"

/** The maximum socket path length, in bytes. macOS allows 103. */
const pathMax = 100

/** Chooses the writer's socket next to the database, or in a private folder if that path is too long. */
const doorAt = (database: string) =>
  Effect.acquireRelease(
    Effect.sync((): Door => {
      const beside = resolve(`${database}.writer`)
      const isShort = Buffer.byteLength(beside) <= pathMax
      return {
        path: isShort ? beside : join(mkdtempSync(join(tmpdir(), "tollgate-")), "writer"),
        token: randomBytes(32).toString("hex")
      }
    }),
    ({ path }) =>
      Effect.sync(() => {
        rmSync(path, { force: true })
        if (path !== resolve(`${database}.writer`)) rmSync(dirname(path), { recursive: true, force: true })
      })
  )

/** The configuration text that all processes use, and a way to reread the file. */
export interface Texts {
  readonly current: () => string
  readonly read: Effect.Effect<ConfigFile, ConfigProblem>
  /** Makes the text from the last `read` the current one. */
  readonly accept: () => void
}

export const textsOf = (path: string, first: string): Texts => {
  let [current, candidate] = [first, first]
  return {
    current: () => current,
    read: Effect.flatMap(
      Effect.suspend(() => Config.readText(path)),
      (text) => {
        candidate = text
        return Config.parse(text, path)
      }
    ),
    accept: () => void (current = candidate)
  }
}

/** Builds the owner's layers. */
export const make = Effect.fnUntraced(function* (address: Address, database: string, workers: number, texts: Texts) {
  const runtime = yield* Effect.runtime<never>()
  const hub = Hub.make((worker, error) =>
    Runtime.runFork(runtime)(Effect.logWarning(`worker ${worker} did not respond`, error))
  )
  const door = yield* doorAt(database)
  const begin: Fleet.Begin = (address) => ({ door, workers, text: texts.current(), address })
  return {
    database: Writer.layerThread(database, door).pipe(
      Layer.provideMerge(Sql.layer(database)),
      Layer.provideMerge(
        Layer.mergeAll(
          Layer.succeed(Peers, hub.peers),
          Layer.succeed(Siblings, hub.siblings),
          Layer.succeed(Counts, hub.counts),
          Layer.succeed(Holds, hub.holds)
        )
      )
    ),
    port: Fleet.layer({ address, workers, hub, begin }),
    together: togetherOf(hub, texts)
  }
})

/** Reloads the owner, then all workers with the same text. A worker that cannot apply it exits, and its replacement starts with that text. */
const togetherOf =
  (hub: Hub.Hub, texts: Texts): Together =>
  (own) =>
    Effect.gen(function* () {
      const turn = yield* Effect.makeSemaphore(1)
      const all: Effect.Effect<Reloaded, ReloadRefused> = turn.withPermits(1)(
        Effect.tap(own, () => {
          texts.accept()
          const value: Subjects.Reloading = { text: texts.current() }
          return Effect.promise(() =>
            hub.askAll({ subject: Subjects.reload, value, patience: Subjects.replyTimeouts.reload })
          )
        })
      )
      const run = Runtime.runPromise(yield* Effect.runtime<never>())
      hub.handlers.set(Subjects.reload, () => run(outcomeOf(all)))
      return all
    })

/** Converts a reload's outcome to the reply. */
export const outcomeOf = (reload: Effect.Effect<Reloaded, ReloadRefused>): Effect.Effect<Subjects.ReloadOutcome> =>
  Effect.match(reload, {
    onFailure: ({ message }) => ({ refused: message }),
    onSuccess: ({ changed }) => ({ changed })
  })

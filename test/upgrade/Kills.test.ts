/**
 * An upgrade that does not come to its end: killed at a write, or failing at one. What lies on the disk then is the file as it was with a
 * part of its log beside it, and a part of the snapshot; the next start makes of it what an upgrade without a kill makes. The newest two
 * versions are interrupted at every write, each earlier one at some, chosen at random: all of them took 45 minutes of a slow machine.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import Sqlite from "better-sqlite3"
import { Effect, Either } from "effect"
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { migrate, migrateFile, newest } from "../../src/storage/sqlite/Sql.ts"
import { freshFolder, root } from "../support/Service.ts"
import { isPostgres } from "../support/database.ts"
import { fixturesOf, folderWith, secret, serve, shownOf } from "./Fixtures.ts"
import type { Fixture } from "./Fixtures.ts"

/** The newest version needs no upgrade. */
const fixtures = fixturesOf("sqlite").filter(({ figures }) => figures.migration < newest)
const newestTwo = new Set(fixtures.slice(-2))

/** All of these for the newest versions. For other versions some, with the first and the last. */
const some = <A>(fixture: Fixture, all: ReadonlyArray<A>, count: number): ReadonlyArray<A> => {
  if (newestTwo.has(fixture) || all.length <= count) return all
  const chosen = Array.from({ length: count - 2 }, () => 1 + Math.floor(Math.random() * (all.length - 2)))
  return [0, ...chosen, all.length - 1].map((index) => all[index]!)
}

const name = "tollgate.db"
const snapshot = `${name}.before-${String(newest).padStart(4, "0")}`

/** What a database says: its tables and rows, but for when migrations were made. */
const contentOf = (file: string): string => {
  const db = new Sqlite(file, { readonly: true })
  try {
    const hash = createHash("sha256")
    const objects = db
      .prepare("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name")
      .all() as ReadonlyArray<{ type: string; name: string }>
    hash.update(JSON.stringify(objects))
    for (const { name, type } of objects) {
      if (type !== "table") continue
      const columns = name === "tollgate_migrations" ? "migration_id, name" : "*"
      const rows = db.prepare(`SELECT ${columns} FROM "${name}"`).raw().safeIntegers().all()
      hash.update(JSON.stringify(rows.map(String).toSorted()))
    }
    return hash.digest("hex")
  } finally {
    db.close()
  }
}

const upgrade = async (folder: string) => {
  // SQLite lets the loop have no turn, and after a minute without one the runner takes this process for lost.
  await new Promise(setImmediate)
  return Effect.runPromise(Effect.either(migrateFile(join(folder, name))))
}

interface Upgraded {
  readonly before: Buffer
  /** The log when all of it is written, and the snapshot. */
  readonly log: Buffer
  readonly snapshot: Buffer
  /** The file when it has taken the log in, and what it says. */
  readonly after: Buffer
  readonly content: string
}

/** An upgrade without a kill, and what lay on the disk at its end. */
const upgraded = async (fixture: Fixture): Promise<Upgraded> => {
  const folder = folderWith(fixture)
  const file = join(folder, name)
  const log = await Effect.runPromise(
    Effect.provide(
      Effect.gen(function* () {
        const sql = yield* SqlClient
        yield* sql`PRAGMA synchronous = FULL`
        yield* migrate(file)
        return readFileSync(`${file}-wal`)
      }),
      SqliteClient.layer({ filename: file })
    )
  )
  const result = {
    before: fixture.content(),
    log,
    snapshot: readFileSync(join(folder, snapshot)),
    after: readFileSync(file),
    content: contentOf(file)
  }
  rmSync(folder, { recursive: true })
  return result
}

/** Brings what a kill left up to date; answers what it says then. */
const resumed = async (files: Readonly<Record<string, Buffer>>): Promise<string> => {
  const folder = freshFolder()
  for (const [file, bytes] of Object.entries(files)) writeFileSync(join(folder, file), bytes)
  expect(await upgrade(folder)).toSatisfy(Either.isRight)
  const content = contentOf(join(folder, name))
  rmSync(folder, { recursive: true })
  return content
}

const logHead = 32
const frame = 24 + 4096

describe.skipIf(isPostgres)("an upgrade that is killed", () => {
  it.each(fixtures.map((fixture) => [fixture.name, fixture] as const))(
    "is done by the next start: %s",
    async (_, fixture) => {
      const { after, before, content, log, snapshot: whole } = await upgraded(fixture)
      // While the snapshot is written.
      for (const size of some(fixture, [0, 1, 512, 4096, 10_000, whole.length - 1, whole.length], 4))
        expect(await resumed({ [name]: before, [snapshot]: whole.subarray(0, size) })).toBe(content)
      // While the log is written: behind each of its frames, and within one.
      const frames = Math.floor((log.length - logHead) / frame)
      const cuts = Array.from({ length: frames + 1 }, (_, count) => logHead + count * frame).flatMap((cut) => [
        cut,
        cut + 100
      ])
      for (const cut of some(fixture, [0, 17, ...cuts], 12))
        expect(await resumed({ [name]: before, [`${name}-wal`]: log.subarray(0, cut), [snapshot]: whole })).toBe(
          content
        )
      // While the file takes in the log.
      const pages = Array.from({ length: Math.ceil(after.length / 4096) }, (_, page) => page)
      for (const page of some(fixture, pages, 6)) {
        const mixed = Buffer.concat([after.subarray(0, page * 4096), before.subarray(page * 4096)])
        expect(await resumed({ [name]: mixed, [`${name}-wal`]: log, [snapshot]: whole })).toBe(content)
      }
    }
  )

  it("is done by the next start of the service, whatever the process was doing", async () => {
    const fixture = fixtures[0]!
    for (const is of [
      (folder: string) => existsSync(join(folder, `${name}-wal`)),
      (folder: string) => existsSync(join(folder, snapshot)),
      (folder: string) =>
        existsSync(join(folder, `${name}-wal`)) && readFileSync(join(folder, `${name}-wal`)).length > 0
    ]) {
      const folder = folderWith(fixture)
      const child = spawn(process.execPath, ["dist/main.js", "migrate"], {
        cwd: root,
        env: { ...process.env, DATA_DIR: folder, TOLLGATE_SECRET: secret }
      })
      const ended = new Promise((resolve) => child.once("exit", resolve))
      while (child.exitCode === null && !is(folder)) await new Promise((go) => setTimeout(go, 1))
      child.kill("SIGKILL")
      await ended
      const service = await serve(folder)
      expect((await shownOf(service, fixture)).answers).toMatchObject(fixture.figures.answers)
      await service.discard()
    }
  })
})

// ---- a write that fails ---------------------------------------------------------------------------------------------------------

/** While it runs, the statement of this number (from 0) fails. Answers how many there were. */
const failing = async (number: number, run: () => Promise<void>): Promise<number> => {
  const own = Sqlite.prototype.prepare
  let count = 0
  Sqlite.prototype.prepare = function (this: Sqlite.Database, text: string) {
    const statement = own.call(this, text)
    if (!/^\s*(CREATE|INSERT|UPDATE|DELETE|ALTER|DROP|WITH|COMMIT|VACUUM)/i.test(text)) return statement
    const fail = () => {
      if (count++ === number) throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_WRITE" })
    }
    for (const way of ["run", "all", "get"] as const) {
      const done = statement[way].bind(statement) as (...values: ReadonlyArray<unknown>) => unknown
      statement[way] = ((...values: ReadonlyArray<unknown>) => {
        fail()
        return done(...values)
      }) as never
    }
    return statement
  } as typeof own
  try {
    await run()
  } finally {
    Sqlite.prototype.prepare = own
  }
  return count
}

describe.skipIf(isPostgres)("an upgrade that fails at a write", () => {
  it.each(fixtures.map((fixture) => [fixture.name, fixture] as const))(
    "leaves the file as it was: %s",
    async (_, fixture) => {
      const folder = folderWith(fixture)
      const file = join(folder, name)
      const before = contentOf(file)
      const reset = () => {
        for (const one of readdirSync(folder)) if (one.startsWith(name)) rmSync(join(folder, one))
        writeFileSync(file, fixture.content())
      }
      const writes = await failing(-1, async () => expect(await upgrade(folder)).toSatisfy(Either.isRight))
      const content = contentOf(file)
      expect(writes).toBeGreaterThan(2)
      for (const number of some(
        fixture,
        Array.from({ length: writes }, (_, number) => number),
        8
      )) {
        reset()
        await failing(number, async () => expect(await upgrade(folder)).toSatisfy(Either.isLeft))
        expect(contentOf(file)).toBe(before)
        expect(await upgrade(folder)).toSatisfy(Either.isRight)
        expect(contentOf(file)).toBe(content)
      }
      rmSync(folder, { recursive: true })
    }
  )
})

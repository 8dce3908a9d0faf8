/** A start on a file that another process has locked: it waits, says so, and gives up after a while. */
import Sqlite from "better-sqlite3"
import { Effect, Logger } from "effect"
import { rmSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { look, tryToWrite, whenUnlocked } from "../../src/storage/sqlite/Opening.ts"
import { migrateFile } from "../../src/storage/sqlite/Sql.ts"
import { freshFolder } from "../support/Service.ts"

let folder: string
let file: string
let other: Sqlite.Database
beforeEach(async () => {
  folder = freshFolder()
  file = join(folder, "books.db")
  await Effect.runPromise(migrateFile(file))
  other = new Sqlite(file)
})
afterEach(() => {
  other.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Runs it, and answers what it logged too. `logged` is called with each line. */
const told = async <A, E>(effect: Effect.Effect<A, E>, logged: (lines: number) => void = () => {}) => {
  const lines: Array<string> = []
  const logger = Logger.make(({ message }) => {
    lines.push(String(message))
    logged(lines.length)
  })
  const exit = await Effect.runPromise(
    Effect.either(effect).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
  )
  return { exit, lines }
}

const writing = (waiting?: Parameters<typeof whenUnlocked>[2]) => whenUnlocked(file, tryToWrite(file), waiting)

it("says at once and again that it waits, and goes on when the file is free", async () => {
  other.exec("BEGIN IMMEDIATE")
  const { exit, lines } = await told(
    writing({ most: 60_000, said: 300 }),
    (count) => count === 3 && other.exec("ROLLBACK")
  )
  expect(exit._tag).toBe("Right")
  expect(lines).toEqual([
    `${file} is locked by another process: waiting up to 60 s`,
    expect.stringMatching(/is locked by another process: waiting up to (59|60) s$/),
    expect.stringMatching(/is locked by another process: waiting up to \d+ s$/)
  ])
})

it("looks at a file that others may not even read, when that is over", async () => {
  other.pragma("locking_mode = EXCLUSIVE")
  other.exec("BEGIN EXCLUSIVE")
  const { exit, lines } = await told(whenUnlocked(file, look(file, { writing: true, patience: 0 })), () =>
    other.close()
  )
  expect(exit).toMatchObject({ _tag: "Right" })
  expect(lines).toHaveLength(1)
})

it("says nothing of a file that is free, and leaves it as it is", async () => {
  const { exit, lines } = await told(writing())
  expect([exit._tag, lines]).toEqual(["Right", []])
})

it("gives up after a while", async () => {
  other.exec("BEGIN IMMEDIATE")
  const { exit, lines } = await told(writing({ most: 500, said: 10_000 }))
  expect(exit).toMatchObject({
    _tag: "Left",
    left: {
      message: `${file} is still locked by another process after 0.5 s: stop that process, or start again when it has finished`
    }
  })
  expect(lines).toHaveLength(1)
})

it("does not wait for what is wrong otherwise", async () => {
  rmSync(file)
  const { exit, lines } = await told(writing())
  expect([exit._tag, lines]).toEqual(["Left", []])
})

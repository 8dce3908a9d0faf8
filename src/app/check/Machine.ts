/**
 * The checks that `tollgate doctor` runs on its own machine: files, disk, clock, versions and backups. They change nothing.
 *
 * Where the specification is silent:
 * - Less than 1 GB of free disk space is a warning and less than 100 MB is a failure. SQLite needs space for its log, and a full disk stops every
 *   call.
 * - The clock is compared with the `Date` of responses from the configured upstreams. A difference above 5 s is a warning. A difference above 60 s is
 *   a failure, because other services then reject sign-in tokens and signatures.
 * - The newest file in the backup folder counts as the newest backup. If that file is more than 26 hours old, the check is a warning.
 */
import { Either, Effect } from "effect"
import { existsSync, readdirSync, statfsSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import * as DataFolder from "../DataFolder.ts"
import type { EnvironmentFacts } from "../Environment.ts"
import * as Engine from "../../storage/engine/Engine.ts"
import * as Files from "../../storage/sqlite/Files.ts"

export interface Examined {
  readonly subject: string
  readonly result: "ok" | "warning" | "failure"
  /** The result of the check, with a remedy for the problem if one is known. */
  readonly finding: string
}

const ok = (subject: string, finding: string): Examined => ({ subject, result: "ok", finding })
const warning = (subject: string, finding: string): Examined => ({ subject, result: "warning", finding })
const failure = (subject: string, finding: string): Examined => ({ subject, result: "failure", finding })

export const permissions = (facts: EnvironmentFacts): Examined => {
  if (!existsSync(facts.data_dir))
    return warning("permissions", `${facts.data_dir} does not exist yet; the first start creates it`)
  const open = Files.shared(DataFolder.placeOf(facts))
  return open.length === 0
    ? ok("permissions", `${facts.data_dir} is private`)
    : warning("permissions", `other users have access to ${open.join(", ")}; the next start removes that access`)
}

const MB = 1_000_000

/** Checks the free space on the disk that stores the database. With PostgreSQL, checks the disk of the data folder. */
export const disk = ({ data_dir, database }: EnvironmentFacts): Examined => {
  const folder = database.engine === "sqlite" ? dirname(database.path) : data_dir
  let free: number
  try {
    const { bavail, bsize } = statfsSync(folder)
    free = bavail * bsize
  } catch (error) {
    return failure("disk", `${folder} cannot be read (${(error as NodeJS.ErrnoException).code}); check that it exists`)
  }
  const finding = `${Math.floor(free / MB)} MB are free at ${folder}`
  if (free >= 1_000 * MB) return ok("disk", finding)
  return (free < 100 * MB ? failure : warning)("disk", `${finding}; free some space: a full disk stops every call`)
}

/** Checks whether the database can be opened, and whether its migrations are complete. */
export const database = ({ database: location }: EnvironmentFacts): Effect.Effect<Examined> =>
  Effect.map(Effect.either(Engine.look(location, { writing: false })), (found) => {
    const newest = Engine.newest(location)
    if (Either.isLeft(found)) return failure("database", found.left.message)
    const applied = found.right ?? 0
    if (applied === 0) return warning("database", `${location.shown} has no tables yet; the first start creates them`)
    if (applied < newest)
      return warning(
        "database",
        `${location.shown} is at migration ${applied} of ${newest}: make a backup, because the next start upgrades it`
      )
    return ok("database", `${location.shown} is at migration ${applied}`)
  })

export const runtime = (version: string): Examined =>
  ok("versions", `tollgate ${version}, Node.js ${process.versions.node}`)

/** Compares this machine's clock with the upstreams' clocks, as shown by their `Date` headers. */
export const clock = (dates: ReadonlyArray<{ readonly date: number; readonly now: number }>): Examined => {
  if (dates.length === 0) return warning("clock", "no upstream sent a date to compare the clock with")
  // A `Date` header contains whole seconds, and a response's latency adds to the difference, so the smallest difference is the most accurate.
  const seconds = Math.min(...dates.map(({ date, now }) => Math.abs(now - date))) / 1_000
  const finding = `the clock differs from the upstreams' clocks by ${Math.round(seconds)} s`
  if (seconds <= 5) return ok("clock", finding)
  return (seconds > 60 ? failure : warning)("clock", `${finding}; set the system clock with NTP`)
}

const hour = 3_600_000
const backupHoursMax = 26

export const backups = (folder: string | undefined, now: number): Examined => {
  if (folder === undefined) return warning("backups", "not checked; pass the backup folder with --backups")
  let times: ReadonlyArray<number>
  try {
    times = readdirSync(folder).flatMap((name) => {
      const found = statSync(join(folder, name), { throwIfNoEntry: false })
      return found?.isFile() === true ? [found.mtimeMs] : []
    })
  } catch (error) {
    return failure("backups", `${folder} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
  if (times.length === 0)
    return failure("backups", `${folder} contains no files; create a backup with tollgate backup --to FILE`)
  const hours = Math.floor((now - Math.max(...times)) / hour)
  return hours <= backupHoursMax
    ? ok("backups", `the newest backup in ${folder} is ${hours} h old`)
    : warning("backups", `the newest backup in ${folder} is ${hours} h old; check that the daily backup still runs`)
}

/**
 * Restricts data files to the service's user. The group and others get no permissions. Files created by root are given to the folder's owner, who
 * must be able to open them later.
 *
 * Where the specification is silent:
 * - The service removes the permissions of the group and others from the data folder (unless it contains other folders) and from its own files. It
 *   gives files created by root to the owner of the folder. New files are private from the start (umask 077).
 */
import { Effect } from "effect"
import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  openSync,
  readdirSync,
  statSync,
  writeFileSync
} from "node:fs"
import type { Stats } from "node:fs"
import { basename, dirname, join } from "node:path"

export interface Place {
  readonly data_dir: string
  /** The database file; `undefined` on PostgreSQL. */
  readonly database: string | undefined
}

/** The completed and the failed changes, one phrase per file or folder. */
export interface Tightened {
  readonly done: ReadonlyArray<string>
  readonly left: ReadonlyArray<string>
}

/** The permissions of the group and others. */
const others = 0o077

const octal = (mode: number): string => (mode & 0o777).toString(8).padStart(4, "0")

const isRoot = process.getuid?.() === 0

/**
 * Removes the permissions of the group and others, and gives files created by root to the owner of the folder. Opening and closing the files releases
 * this process's locks on them, so no code may have them open.
 */
export const tighten = ({ data_dir, database }: Place): Effect.Effect<Tightened> =>
  Effect.sync(() => {
    const done: Array<string> = []
    const left: Array<string> = []
    if (process.platform === "win32") return { done, left }
    const report = (path: string, change: Change) => {
      if (change === undefined) return
      if (change.done) done.push(`${path} (${change.what})`)
      else left.push(`${path} (${change.what})`)
    }
    const folder = statOf(data_dir)
    if (folder !== undefined) report(data_dir, tightenFolder(data_dir, folder))
    for (const path of filesOf({ data_dir, database })) report(path, tightenFile(path, statOf(dirname(path))))
    return { done, left }
  })

/** Lists the folders and files that other users can access, one phrase each. Changes nothing. */
export const shared = (place: Place): ReadonlyArray<string> =>
  process.platform === "win32"
    ? []
    : [place.data_dir, ...filesOf(place)].flatMap((path) => {
        const mode = statOf(path)?.mode ?? 0
        return (mode & others) === 0 ? [] : [`${path} (${octal(mode)})`]
      })

type Change = { readonly done: boolean; readonly what: string } | undefined

const tightenFolder = (path: string, { mode }: Stats): Change => {
  if ((mode & others) === 0) return undefined
  // Other users might need this folder to reach their own folders, so do not restrict it.
  const foreign = (mode & 0o1000) !== 0 || foldersIn(path).some((name) => name !== "native" && name !== "lost+found")
  if (foreign)
    return { done: false, what: `${octal(mode)}: it also contains other folders; give the service its own folder` }
  try {
    chmodSync(path, mode & 0o700)
    return { done: true, what: `${octal(mode)} to ${octal(mode & 0o700)}` }
  } catch {
    return { done: false, what: `${octal(mode)}: it belongs to another user` }
  }
}

/** Changes the file itself, never the target of a link. Otherwise, a user who can write to the folder could make root change files elsewhere. */
const tightenFile = (path: string, folder: Stats | undefined): Change => {
  let file: number
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
  try {
    const found = fstatSync(file)
    if (!found.isFile() || found.nlink !== 1) return undefined
    try {
      if (isRoot && found.uid === 0 && folder !== undefined && folder.uid !== 0)
        fchownSync(file, folder.uid, folder.gid)
      if ((found.mode & others) === 0) return undefined
      fchmodSync(file, found.mode & 0o700)
      return { done: true, what: `${octal(found.mode)} to ${octal(found.mode & 0o700)}` }
    } catch {
      return { done: false, what: `${octal(found.mode)}: it belongs to another user` }
    }
  } finally {
    closeSync(file)
  }
}

/** Lists the database files (with the lock and the snapshots) and the service's other files in the data folder. */
const filesOf = ({ data_dir, database }: Place): ReadonlyArray<string> => {
  const name = database === undefined ? undefined : basename(database)
  const beside =
    database === undefined
      ? []
      : namesIn(dirname(database))
          .filter((one) => one === name || one.startsWith(`${name}.`) || one.startsWith(`${name}-`))
          .map((one) => join(dirname(database), one))
  const inFolder = namesIn(data_dir).filter(
    (one) => one === "secret" || one === "demo.json" || one.startsWith("sandbox-") || one.endsWith(".db")
  )
  return [...new Set([...beside, ...inFolder.map((one) => join(data_dir, one))])]
}

const namesIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

const foldersIn = (folder: string): ReadonlyArray<string> => {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? [one.name] : []))
  } catch {
    return []
  }
}

/** Creates an empty private file for a copy that SQLite writes. */
export const blank = (path: string): Effect.Effect<void> =>
  Effect.sync(() => writeFileSync(path, "", { flag: "wx", mode: 0o600 }))

const statOf = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

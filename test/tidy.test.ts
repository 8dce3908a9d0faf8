/** The rules of the house that a linter cannot say: who may import whom, who may write which tables, words that we do not use. */
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, normalize } from "node:path"
import { describe, expect, it } from "vitest"

const source = join(import.meta.dirname, "..", "src")
const files = (readdirSync(source, { recursive: true }) as ReadonlyArray<string>).filter((file) => file.endsWith(".ts"))
const textOf = (file: string): string => readFileSync(join(source, file), "utf8")

/** The project's own files that a file imports, types included. */
const importsOf = (file: string): ReadonlyArray<string> =>
  [...textOf(file).matchAll(/from "(\.{1,2}\/[^"]+)"/g)].map(([, path]) => normalize(join(dirname(file), path!)))

const roomOf = (file: string): string => (file.includes("/") ? file.split("/")[0]! : "root")
const isContract = (file: string) => basename(file) === "Api.ts"
const isHandler = (file: string) => file.endsWith("Http.ts")

const offences = (rule: (file: string, imported: string) => string | undefined): ReadonlyArray<string> =>
  files.flatMap((file) =>
    importsOf(file).flatMap((imported) => {
      const why = rule(file, imported)
      return why === undefined ? [] : [`${file} imports ${imported}: ${why}`]
    })
  )

describe("who may import whom", () => {
  it("the kernel imports nothing of ours but the kernel", () => {
    expect(
      offences((file, imported) =>
        roomOf(file) === "kernel" && roomOf(imported) !== "kernel" ? "the kernel knows nobody" : undefined
      )
    ).toEqual([])
  })

  it("only handlers and root files import the contract", () => {
    expect(
      offences((file, imported) =>
        isContract(imported) && !isHandler(file) && !isContract(file) && roomOf(file) !== "root"
          ? "a service does not know how it is asked"
          : undefined
      )
    ).toEqual([])
  })

  it("only root files import handlers", () => {
    expect(
      offences((file, imported) =>
        isHandler(imported) && roomOf(file) !== "root" ? "handlers are wired in the root files" : undefined
      )
    ).toEqual([])
  })

  it("a contract imports no service and no SQL", () => {
    const contracts = files.filter(isContract).filter((file) => file !== "Api.ts")
    for (const file of contracts) expect(textOf(file), file).not.toMatch(/@effect\/sql|Context\.Tag/)
  })

  it("handlers do not speak SQL, but for the one that asks whether the database is there", () => {
    const speak = files.filter((file) => isHandler(file) && textOf(file).includes("sql`"))
    expect(speak).toEqual(["ops/Http.ts"])
  })
})

describe("who may do what", () => {
  it("only the ledger writes its tables", () => {
    const write = /(INSERT INTO|UPDATE|DELETE FROM)\s+(ledger_|usage_)|insert\("(ledger_|usage_)/
    expect(files.filter((file) => write.test(textOf(file)) && !file.startsWith("ledger/"))).toEqual([])
  })

  it("only root files read the environment", () => {
    expect(files.filter((file) => textOf(file).includes("process.env") && roomOf(file) !== "root")).toEqual([])
  })

  it("the time comes from the clock", () => {
    const wrong = /Date\.now\(|new Date\(|Math\.random\(/
    const allowed = new Set(["kernel/Moment.ts", "sandbox/SteeredClock.ts"])
    expect(files.filter((file) => wrong.test(textOf(file)) && !allowed.has(file))).toEqual([])
  })
})

describe("words", () => {
  it("folders and files are named for what they hold", () => {
    const vague = /^(utils?|common|helpers?|types|misc|shared|index)$/i
    const names = files.flatMap((file) => file.replace(/\.ts$/, "").split("/"))
    expect(names.filter((name) => vague.test(name) || /(Impl|Live|Service|Manager)$/.test(name))).toEqual([])
  })

  it("each file opens with what it is, or is one of those whose name says it", () => {
    const bare = files.filter((file) => !/^(#!.*\n)?\/\*\*/.test(textOf(file)))
    expect(bare.filter((file) => !isHandler(file) && basename(file) !== "Problems.ts")).toEqual([])
  })

  it("nothing is left for later by its own words", () => {
    const marks = /\b(TODO|FIXME|XXX)\b|not implemented/i
    expect(files.filter((file) => marks.test(textOf(file)))).toEqual([])
  })
})

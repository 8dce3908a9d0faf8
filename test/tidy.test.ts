/** The rules of the house that a linter cannot say: who may import whom, who may name which tables, words that we do not use. */
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, normalize } from "node:path"
import { describe, expect, it } from "vitest"

const source = join(import.meta.dirname, "..", "src")
const all = (readdirSync(source, { recursive: true }) as ReadonlyArray<string>).filter((file) => /\.tsx?$/.test(file))
/** The console's page runs in a browser: a program of its own, with rules of its own. */
const isPage = (file: string): boolean => file.startsWith("console/web/")
const files = all.filter((file) => !isPage(file))
const page = all.filter(isPage)
const textOf = (file: string): string => readFileSync(join(source, file), "utf8")

/** What a file imports, types included, however it does so. */
const namedBy = (file: string): ReadonlyArray<string> =>
  [...textOf(file).matchAll(/(?:\bfrom|\bimport) *\(? *"([^"]+)"/g)].map(([, name]) => name!)

/** The project's own files that a file imports. */
const importsOf = (file: string): ReadonlyArray<string> =>
  namedBy(file).flatMap((name) => (name.startsWith(".") ? [normalize(join(dirname(file), name))] : []))

// Entry points and commands compose the rooms, as the files of the root do.
const roomOf = (file: string): string =>
  file.includes("/") && !/^(entry|commands)\//.test(file) ? file.split("/")[0]! : "root"
const isContract = (file: string) => basename(file) === "Api.ts"
const isHandler = (file: string) => file.endsWith("Http.ts")
/** A file that says what there is, not how it is done. */
const isPromise = (file: string) => isContract(file) || basename(file) === "Problems.ts"
const isService = (file: string) => files.includes(file) && textOf(file).includes("Context.Tag(")
const speaksSql = (file: string) =>
  namedBy(file).some((name) => name.startsWith("@effect/sql") || name === "better-sqlite3")

/** What a file takes from the platform's HTTP, but for the annotations of schemas. */
const speaksHttp = (file: string): boolean => {
  const parts = [...textOf(file).matchAll(/import (?:type )?\{([^}]*)\} from "@effect\/platform"/g)].flatMap(
    ([, names]) => names!.split(",").map((name) => name.trim().replace(/^type /, ""))
  )
  const modules = namedBy(file).flatMap((name) => /^@effect\/platform(?:-node)?\/(.*)$/.exec(name)?.[1] ?? [])
  return [...parts, ...modules].some((name) => /^(?:Node)?Http(?!ApiSchema$)/.test(name))
}

/** The shortest way by imports from a file to one of which this is true. */
const wayTo = (from: string, is: (file: string) => boolean): ReadonlyArray<string> | undefined => {
  const ways = [[from]]
  const seen = new Set([from])
  for (const way of ways) {
    const last = way.at(-1)!
    if (is(last)) return way
    for (const next of importsOf(last)) {
      if (seen.has(next) || !files.includes(next)) continue
      seen.add(next)
      ways.push([...way, next])
    }
  }
  return undefined
}

/** Files of which something is true that must not be, each as a sentence. */
const breaches = (why: string, is: (file: string) => boolean): ReadonlyArray<string> =>
  files.filter(is).map((file) => `${file}: ${why}`)

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

  it("the kernel needs nothing but effect, and the schema annotations of the platform", () => {
    const known = new Set(["effect", "@effect/platform"])
    expect(
      breaches(
        "the kernel needs nothing but effect",
        (file) => roomOf(file) === "kernel" && namedBy(file).some((name) => !name.startsWith(".") && !known.has(name))
      )
    ).toEqual([])
  })

  it("the protocols need nothing but the kernel and effect", () => {
    expect(
      offences((file, imported) =>
        roomOf(file) === "protocols" && !["protocols", "kernel"].includes(roomOf(imported))
          ? "a protocol is words"
          : undefined
      )
    ).toEqual([])
    expect(
      breaches(
        "a protocol needs nothing but effect",
        (file) =>
          roomOf(file) === "protocols" && namedBy(file).some((name) => !name.startsWith(".") && name !== "effect")
      )
    ).toEqual([])
  })

  it("a contract imports no service and no SQL, nor do problems", () => {
    expect(
      offences((file, imported) =>
        isPromise(file) && roomOf(file) !== "root" && isService(imported)
          ? "what is promised does not know how it is kept"
          : undefined
      )
    ).toEqual([])
    expect(breaches("what is promised does not speak SQL", (file) => isPromise(file) && speaksSql(file))).toEqual([])
    expect(breaches("a service is no part of what is promised", (file) => isPromise(file) && isService(file))).toEqual(
      []
    )
  })

  it("a service knows no HTTP, and imports nothing that does", () => {
    // Rooms of HTTP, of what watches the process, and of the world outside; and the pages for a browser.
    const rooms = new Set(["http", "idempotency", "ops", "sandbox", "root"])
    const isFace = (file: string) =>
      rooms.has(roomOf(file)) || isHandler(file) || isContract(file) || file === "auth/Browser.ts"
    expect(
      files
        .filter((file) => isService(file) && !isFace(file))
        .flatMap((file) => {
          const way = wayTo(file, (one) => roomOf(one) === "http" || speaksHttp(one))
          return way === undefined ? [] : [way.join(" imports ")]
        })
    ).toEqual([])
  })

  it("handlers do not speak SQL", () => {
    expect(breaches("a handler asks a service", (file) => isHandler(file) && speaksSql(file))).toEqual([])
  })
})

/**
 * `Context.Reference`s: what may be left out of a composition without a word. Limits, patience, observers and annotations may; nothing
 * that says who pays, what is charged, whether money is taken, or who is let in: those are tags, whose absence does not compile.
 */
const references: Readonly<Record<string, string>> = {
  Bytes: "a limit: bytes of bodies",
  CommitLimit: "a limit: how long a commit may take",
  ContactEmail: "messages are stored whether they are mailed or not",
  CreationPatience: "a limit: how long an answer waits for its images",
  CurrentSandbox: "absent, there are no levers",
  ImagePatience: "a limit: how long an answer waits for its images",
  Lanes: "where the fast lane is found; the platform's router answers the same without it",
  Leadership: "absent, a program turns all its loops; their statements do nothing twice",
  KeptConfig: "a limit: stored answers of an account",
  LetterLimits: "a limit: letters of an account",
  LoopObserver: "an observer",
  Observer: "an observer",
  OnLateSettlement: "an observer",
  RawHandlers: "where handlers of the fast lane are found; the platform's router answers the same without it",
  RateLimitsConfig: "a limit: calls of an address",
  SettlementPatience: "a limit: how long an answer waits for its settlement",
  TailMax: "a limit: how far the sums that are read are behind the records",
  Tracing: "whether traces are made",
  Unread: "a limit: how long an answer waits for its reader",
  UpstreamObserver: "an observer",
  VerifyInterval: "how often the books are looked at"
}

describe("what may be left out", () => {
  const found = files.flatMap((file) =>
    [...textOf(file).matchAll(/class (\w+) extends Context\.Reference\b/g)].map(([, name]) => ({ file, name: name! }))
  )

  it("is a limit, an observer, or an annotation of a contract; never what moves money", () => {
    const annotations = /^http\/(Annotations|Documented|Frame)\.ts$/
    expect(found.filter(({ file, name }) => !annotations.test(file) && !Object.hasOwn(references, name))).toEqual([])
    expect(Object.keys(references).filter((name) => !found.some((one) => one.name === name))).toEqual([])
  })

  it("is the sandbox: only its own command and entry point load it", () => {
    const contract = /^sandbox\/(Api|Http|SandboxInfo)\.ts$/
    expect(
      offences((file, imported) =>
        imported.startsWith("sandbox/") &&
        roomOf(file) !== "sandbox" &&
        !contract.test(imported) &&
        !/^(commands\/Sandbox|entry\/sandbox|entry\/contracts)\.ts$/.test(file)
          ? "a deployment does not load the sandbox"
          : undefined
      )
    ).toEqual([])
  })
})

describe("who may do what", () => {
  it("tables are named, so read and written, only by their room", () => {
    /** Of tables whose room is not in their name, and of those that two rooms name, with the reason. */
    const rooms: Readonly<Record<string, ReadonlyArray<string>>> = {
      // Named before the room was.
      tollgate_price_versions: ["prices"],
      tollgate_transfers: ["transfers"]
    }
    const roomsOf = (table: string): ReadonlyArray<string> => {
      const room = table.split("_")[1]!
      // The writer keeps the records and sums of usage in the transaction that settles; usage/ reads them.
      return rooms[table] ?? (room === "usage" ? ["usage", "ledger"] : [room])
    }
    // Who makes them names them all.
    const makes = (file: string) => file.startsWith("sql/migrations/") || file === "sql/postgres/Schema.ts"
    const tables = new Set(
      files
        .filter(makes)
        .flatMap((file) => [...textOf(file).matchAll(/CREATE TABLE (?:IF NOT EXISTS )?(tollgate_\w+)/g)])
        .map(([, table]) => table!)
    )
    expect(tables.size).toBeGreaterThan(30)
    const named = files
      .filter((file) => !makes(file))
      .flatMap((file) => [...textOf(file).matchAll(/\btollgate_\w+/g)].map(([table]) => ({ file, table })))
      .filter(({ table }) => tables.has(table))
    expect(
      named
        .filter(({ file, table }) => !roomsOf(table).includes(roomOf(file)))
        .map(({ file, table }) => `${file} names ${table}: ask its room`)
    ).toEqual([])
    const written = new RegExp(
      "(?:insert(?:\\s+or\\s+\\w+)?\\s+into|replace\\s+into|update(?:\\s+or\\s+\\w+)?|delete\\s+from)" +
        '\\s+["\'`]?tollgate_usage_|\\binsert\\("tollgate_usage_',
      "i"
    )
    expect(
      breaches(
        "only the ledger writes the tables of usage",
        (file) => roomOf(file) === "usage" && written.test(textOf(file))
      )
    ).toEqual([])
  })

  it("the ledger knows no HTTP and no Idempotency-Key", () => {
    expect(
      offences((file, imported) =>
        roomOf(file) === "ledger" && ["http", "idempotency"].includes(roomOf(imported))
          ? "the ledger is for programs"
          : undefined
      )
    ).toEqual([])
  })

  it("only root files read the environment", () => {
    expect(
      breaches(
        "only root files read the environment",
        (file) => roomOf(file) !== "root" && /process\.env|node:process/.test(textOf(file))
      )
    ).toEqual([])
  })

  it("the time comes from the clock, and chance from the platform's own source", () => {
    const wrong = /Date\.now\b|new Date\(|Math\.random\b/
    const allowed = new Set(["kernel/Moment.ts", "sandbox/SteeredClock.ts"])
    expect(breaches("the time comes from the clock", (file) => !allowed.has(file) && wrong.test(textOf(file)))).toEqual(
      []
    )
  })
})

describe("the console's page", () => {
  const views = /^console\/web\/(views|operator)\//
  const calculates =
    /\b(?:cost|amount|balance|credits|charged|spent|total_cost)(?:_usd)?\b *[-+*/] *(?!\d+n\b)[\w(]|\.toFixed\(/

  it("imports nothing of the service, and the service nothing of it: the contract is between them", () => {
    expect(
      page.flatMap((file) =>
        importsOf(file)
          .filter((imported) => !isPage(imported))
          .map((imported) => `${file} imports ${imported}`)
      )
    ).toEqual([])
    expect(offences((_, imported) => (isPage(imported) ? "the page is no part of the service" : undefined))).toEqual([])
  })

  it("calculates with no amount as it comes", () => {
    expect(page.filter((file) => views.test(file) && calculates.test(textOf(file)))).toEqual([])
  })

  it("keeps no token where a script of another page or a log could read it", () => {
    const stores = /(?:localStorage|sessionStorage|document\.cookie)[^\n]*token/i
    expect(page.filter((file) => stores.test(textOf(file)))).toEqual([])
  })

  it("has files that open with what they are", () => {
    expect(page.filter((file) => !textOf(file).startsWith("/**"))).toEqual([])
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

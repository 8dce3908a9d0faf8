/** The rules that a linter cannot hold: the order of the wings, who may name which tables, and counts that may only fall. */
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join, normalize } from "node:path"
import ts from "typescript"
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

/** The wings, lowest first. A wing imports only wings below it. */
const wings = [
  "kernel",
  "protocols",
  "storage",
  "books",
  "upstream",
  "http",
  "people",
  "money",
  "calls",
  "console",
  "operations",
  "sandbox",
  "testing",
  "app",
  "main.ts"
]
const wingOf = (file: string): string => file.split("/")[0]!
/** `wing/room`; the wing itself for files directly in it. */
const roomOf = (file: string): string => file.split("/").slice(0, -1).slice(0, 2).join("/") || file
/** `app` composes the rooms, so it may import contracts, handlers and the sandbox, and read the environment. */
const isApp = (file: string): boolean => ["app", "main.ts"].includes(wingOf(file)) || isCapability(file)
/** A room's value for `app/Capabilities`, which joins its service, handlers and settings. */
const isCapability = (file: string): boolean => basename(file) === "Capability.ts"
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

/**
 * Groups of files that import each other in a circle. Groups that import nothing, and groups that nothing imports, are removed until only the
 * circles are left, with the groups between two circles.
 */
const circlesAmong = (groupOf: (file: string) => string): ReadonlyArray<string> => {
  const arrows = new Map<string, Set<string>>(files.map((file) => [groupOf(file), new Set()]))
  for (const file of files)
    for (const imported of importsOf(file).filter((one) => files.includes(one)))
      if (groupOf(imported) !== groupOf(file)) arrows.get(groupOf(file))!.add(groupOf(imported))
  for (;;) {
    const wanted = new Set([...arrows.values()].flatMap((to) => [...to]))
    const free = [...arrows].filter(([group, to]) => !wanted.has(group) || [...to].every((one) => !arrows.has(one)))
    if (free.length === 0) break
    for (const [group] of free) arrows.delete(group)
  }
  return [...arrows].map(([group, to]) => `${group} imports ${[...to].filter((one) => arrows.has(one)).join(", ")}`)
}

/** Files that break a rule, each as a sentence. */
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
  it("the wings are those of the list", () => {
    expect(
      readdirSync(source)
        .filter((name) => !name.endsWith(".md"))
        .toSorted()
    ).toEqual(wings.toSorted())
  })

  it("a wing imports only wings below it", () => {
    expect(
      offences((file, imported) =>
        wings.indexOf(wingOf(imported)) > wings.indexOf(wingOf(file)) ? "that wing is above" : undefined
      )
    ).toEqual([])
  })

  it("no rooms import each other in a circle, nor do the folders in them", () => {
    expect(circlesAmong(roomOf)).toEqual([])
    expect(circlesAmong(dirname)).toEqual([])
  })

  it("only handlers and the app import the contract", () => {
    expect(
      offences((file, imported) =>
        isContract(imported) && !isHandler(file) && !isContract(file) && !isApp(file)
          ? "a service does not know how it is asked"
          : undefined
      )
    ).toEqual([])
  })

  it("only the app imports capabilities", () => {
    expect(
      offences((file, imported) => (isCapability(imported) && wingOf(file) !== "app" ? "the app composes" : undefined))
    ).toEqual([])
  })

  it("only the app imports handlers", () => {
    expect(
      offences((file, imported) => (isHandler(imported) && !isApp(file) ? "the app wires handlers" : undefined))
    ).toEqual([])
  })

  it("the kernel needs nothing but effect, and the schema annotations of the platform", () => {
    const known = new Set(["effect", "@effect/platform"])
    expect(
      breaches(
        "the kernel needs nothing but effect",
        (file) => wingOf(file) === "kernel" && namedBy(file).some((name) => !name.startsWith(".") && !known.has(name))
      )
    ).toEqual([])
  })

  it("the protocols need nothing but effect", () => {
    expect(
      breaches(
        "a protocol needs nothing but effect",
        (file) =>
          wingOf(file) === "protocols" && namedBy(file).some((name) => !name.startsWith(".") && name !== "effect")
      )
    ).toEqual([])
  })

  it("a contract imports no service and no SQL, nor do problems", () => {
    expect(
      offences((file, imported) =>
        isPromise(file) && !isApp(file) && isService(imported)
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
    // HTTP, what watches the process, the world outside, the composition; and the pages for a browser.
    const isFace = (file: string) =>
      ["http", "sandbox", "app", "main.ts"].includes(wingOf(file)) ||
      roomOf(file) === "operations/ops" ||
      isHandler(file) ||
      isContract(file) ||
      file === "people/auth/Browser.ts"
    expect(
      files
        .filter((file) => isService(file) && !isFace(file))
        .flatMap((file) => {
          const way = wayTo(file, (one) => wingOf(one) === "http" || speaksHttp(one))
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
  BillDrifts: "absent, the metrics have no gauges of vendors' bills",
  BillingVendors: "absent, no vendor's bill is compared; a comparison moves no money",
  Bytes: "a limit: bytes of bodies",
  CallObserver: "an observer",
  CommitLimit: "a limit: how long a commit may take",
  ContactEmail: "messages are stored whether they are mailed or not",
  ContactKeptDays: "a limit: how long messages are stored",
  Counts: "a limit: requests of an address or account, counted by each process alone if absent",
  CreationPatience: "a limit: how long an answer waits for its images",
  CurrentSandbox: "absent, there are no levers",
  ImagePatience: "a limit: how long an answer waits for its images",
  KnownCalls: "absent, a budget may name any model, provider or capability: it only ever narrows what is called",
  KnownModels: "absent, a list of models may have any name: it only ever narrows a key",
  Lanes: "where the fast lane is found; the platform's router answers the same without it",
  Handovers: "absent, services are never replaced, and no loop of theirs has work to take over",
  Holds: "a limit: what an account has open at a time, counted by each process alone if absent",
  LogSettings: "absent, the log has no witnesses; they only prove what it holds",
  Leadership: "absent, a program turns all its loops; their statements do nothing twice",
  Siblings: "absent, the process shows its own metrics and loops",
  StoredAnswersConfig: "a limit: stored answers of an account",
  LetterLimits: "a limit: letters of an account",
  LoopObserver: "an observer",
  NewTenantBudgets: "a limit: the operator's budgets of new tenants",
  Observer: "an observer",
  OnLateSettlement: "an observer",
  RawHandlers: "where handlers of the fast lane are found; the platform's router answers the same without it",
  RateLimitsConfig: "a limit: calls of an address",
  RoutingObserver: "an observer",
  SettlementPatience: "a limit: how long an answer waits for its settlement",
  Reload: "absent, there is no configuration file to read again",
  RefusedCalls: "a limit: log lines about refused calls",
  RollupLagMax: "a limit: how far the sums that are read are behind the records",
  TransferLimits: "a limit: transfers of a tenant",
  Tracing: "whether traces are made",
  Unread: "a limit: how long an answer waits for its reader",
  UpstreamObserver: "an observer",
  VerifyInterval: "how often the books are looked at",
  WitnessStates: "absent, the metrics have no gauges of the log's witnesses"
}

describe("what may be left out", () => {
  const found = files.flatMap((file) =>
    [...textOf(file).matchAll(/class (\w+) extends Context\.Reference\b/g)].map(([, name]) => ({ file, name: name! }))
  )

  it("is a limit, an observer, or an annotation of a contract; never what moves money", () => {
    const annotations = /^http\/contract\/(Annotations|Documented)\.ts$/
    expect(found.filter(({ file, name }) => !annotations.test(file) && !Object.hasOwn(references, name))).toEqual([])
    expect(Object.keys(references).filter((name) => !found.some((one) => one.name === name))).toEqual([])
  })

  it("is the sandbox: only its own command and entry point load it", () => {
    const contract = /^sandbox\/(Api|Http)\.ts$/
    expect(
      offences((file, imported) =>
        wingOf(imported) === "sandbox" &&
        wingOf(file) !== "sandbox" &&
        !contract.test(imported) &&
        !/^app\/(commands\/Sandbox|entry\/sandbox|entry\/contracts)\.ts$/.test(file)
          ? "a deployment does not load the sandbox"
          : undefined
      )
    ).toEqual([])
  })
})

describe("who may do what", () => {
  it("tables are named, so read and written, only by their room", () => {
    /** Rooms whose tables have another word in their name. */
    const named: Readonly<Record<string, ReadonlyArray<string>>> = {
      auth: ["people/auth", "people/credentials"],
      chat: ["calls/prompts"],
      price: ["books/prices"],
      sql: ["storage/database", "storage/postgres", "storage/sqlite"],
      // The writer keeps the records and sums of usage in the transaction that settles; usage/ reads them.
      usage: ["money/usage", "books/ledger"]
    }
    const roomsOf = (table: string): ReadonlyArray<string> => {
      const word = table.split("_")[1]!
      const isOwner = (file: string) => roomOf(file).endsWith(`/${word}`) && wingOf(file) !== "upstream"
      return named[word] ?? files.filter(isOwner).map(roomOf)
    }
    // Migrations name all tables.
    const makes = (file: string) => file.startsWith("storage/migrations/") || file === "storage/postgres/Schema.ts"
    const tables = new Set(
      files
        .filter(makes)
        .flatMap((file) => [...textOf(file).matchAll(/CREATE TABLE (?:IF NOT EXISTS )?(tollgate_\w+)/g)])
        .map(([, table]) => table!)
    )
    expect(tables.size).toBeGreaterThan(30)
    const namings = files
      .filter((file) => !makes(file))
      .flatMap((file) => [...textOf(file).matchAll(/\btollgate_\w+/g)].map(([table]) => ({ file, table })))
      .filter(({ table }) => tables.has(table))
    expect(
      namings
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
        (file) => roomOf(file) === "money/usage" && written.test(textOf(file))
      )
    ).toEqual([])
  })

  it("only the app reads the environment", () => {
    expect(
      breaches(
        "only the app reads the environment",
        (file) => (!isApp(file) || isCapability(file)) && /process\.env|node:process/.test(textOf(file))
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

  it("imports nothing of the service but the published verifier of receipts, which needs nothing else", () => {
    const published = page.flatMap(namedBy).filter((name) => name.startsWith("tollgate"))
    expect([...new Set(published)]).toEqual(["tollgate/receipts"])
    const verifier = new Set(["app/entry/receipts.ts"])
    for (const file of verifier) for (const imported of importsOf(file)) verifier.add(imported)
    const others = [...verifier]
      .flatMap(namedBy)
      .filter((name) => !/^(?:\.|\.\.\/\.\.\/money\/receipts)\/\w*Verifier\.ts$/.test(name))
    expect(others).toEqual([])
  })

  it("imports no file of the service, and the service none of it: the contract is between them", () => {
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

/** Counts that may only fall: after an improvement, write the lower figure here. */
describe("what may only become less", () => {
  const commentLines = all
    .filter((file) => !file.endsWith(".d.ts"))
    .flatMap((file) => textOf(file).split("\n"))
    .filter((line) => /^\s*(?:\/\/|\/\*|\*)/.test(line))

  it("comment lines with turns of phrase that a native engineer would not use", () => {
    const turns =
      /\b[Ww]hoever\b|\b[Nn]obody\b|\b[Ss]omebody\b|\b(of|by) (which|whom)\b|(^|[.:;*/] )Who [a-z]+s? |\bas (it|they) (is|are|came|stands|stand)\b/
    expect(commentLines.filter((line) => turns.test(line)).length).toBeLessThanOrEqual(1)
  })

  it('comments that begin with "What" where a noun would do', () => {
    expect(commentLines.filter((line) => /^\s*(?:\/\/|\/\*\*?|\*) What /.test(line)).length).toBeLessThanOrEqual(1)
  })

  it("functions that do not fit a screen: more than 70 lines", () => {
    expect(
      all
        .filter((file) => !file.endsWith(".d.ts"))
        .flatMap(longIn)
        .toSorted()
    ).toEqual(long)
  })
})

/** The outermost functions of a file that are too long: `wing/room/File.ts name`. */
const longIn = (file: string): ReadonlyArray<string> => {
  const kind = file.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS
  const tree = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true, kind)
  const lineOf = (position: number) => tree.getLineAndCharacterOfPosition(position).line
  const found: Array<string> = []
  const visit = (node: ts.Node, name: string): void => {
    const own = [name, (node as ts.NamedDeclaration).name?.getText()].filter((part) => part).join(".")
    if (ts.isFunctionLike(node) && (node as ts.FunctionLikeDeclaration).body !== undefined) {
      if (lineOf(node.getEnd()) - lineOf(node.getStart()) >= 70) found.push(`${file} ${own}`)
      return
    }
    const isNamed = ts.isVariableDeclaration(node) || ts.isClassDeclaration(node) || ts.isPropertyDeclaration(node)
    ts.forEachChild(node, (child) => visit(child, isNamed ? own : name))
  }
  visit(tree, "")
  return found
}

/** This list may only become shorter. Each has its reason. */
const long = [
  // Its functions share the calls that are not written yet, and whether the gate is closed. Each call uses them: a closure reads a variable.
  "books/gate/Gate.ts make",
  // Its functions share the queue, the batch that commits and the state of the database, and change all three.
  "books/ledger/write/ClientWriter.ts make",
  // The same, with a batch for each connection.
  "books/ledger/write/PostgresWriter.ts make",
  // The same, with a link that may end and be opened again.
  "books/ledger/write/QueuedWriter.ts make",
  // One generic class and its schema, which refer to each other and to the declaration.
  "kernel/Problem.ts Problem",
  // The loop of the hot path: its closures share state without an object that each call would read.
  "kernel/hot/FiberPool.ts make"
]

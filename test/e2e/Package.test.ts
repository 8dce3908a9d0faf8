/** What people install: packed, put into an empty folder with nothing but its peers, compiled under `strict`, run. */
import { execFile } from "node:child_process"
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { freshFolder, root } from "../support/Service.ts"

/** How long a compilation may take where everybody else uses the machine too, in milliseconds. */
const compilation = 600_000

const hosts = ["meter.ts", "ledger.ts", "capabilities.ts", "models.ts", "mounted.ts", "api.ts"]

let folder: string

const run = (file: string, args: ReadonlyArray<string>, cwd: string): Promise<string> =>
  promisify(execFile)(file, args, { cwd, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }).then(
    ({ stdout }) => stdout,
    (failed: Error & { stdout: string }) => {
      throw new Error(`${failed.message}\n${failed.stdout}`, { cause: failed })
    }
  )

/** A host's own output, which comes after the lines of the log. */
const printed = (stdout: string): unknown => JSON.parse(stdout.trim().split("\n").at(-1)!)

const { dependencies, exports, peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  dependencies: Record<string, string>
  exports: Record<string, unknown>
  peerDependencies: Record<string, string>
}

const entries = Object.keys(exports)
  .filter((entry) => entry !== "./package.json")
  .map((entry) => `tollgate/${entry.slice(2)}`)

/**
 * A host that hands on everything that there is: each value, what each service promises, method by method, and each layer. Its
 * declarations can be written only if every type in them has a name that an importer may use.
 */
const names = async (): Promise<string> => {
  // Tags of a plain value, which has no methods.
  const plain = new Set(["ImagePatience", "LetterPrice"])
  const script = `
    import { Context } from "effect"
    const found = []
    for (const entry of ${JSON.stringify(entries)}) {
      for (const [name, value] of Object.entries(await import(entry))) {
        const preset = Context.isTag(value) && value.defaultValue !== undefined ? value.defaultValue() : {}
        found.push({
          entry,
          name,
          service: Context.isTag(value),
          methods: Context.isTag(value) && typeof preset === "object",
          // A layer has a property of such a name too, which its type does not tell of.
          layers: Context.isTag(value) ? Object.getOwnPropertyNames(value).filter((key) => key.startsWith("layer")) : []
        })
      }
    }
    console.log(JSON.stringify(found))`
  const found = JSON.parse(
    await run(process.execPath, ["--input-type=module", "-e", script], folder)
  ) as ReadonlyArray<{
    entry: string
    name: string
    service: boolean
    methods: boolean
    layers: ReadonlyArray<string>
  }>
  const at = (entry: string) => `entry${entries.indexOf(entry)}`
  return [
    'import { Effect, identity } from "effect"',
    ...entries.map((entry) => `import * as ${at(entry)} from ${JSON.stringify(entry)}`),
    ...found.flatMap(({ entry, layers, methods, name, service }) => {
      const value = `${at(entry)}.${name}`
      const own = `export const ${at(entry)}_${name}`
      return [
        service ? `${own} = Effect.map(${value}, (service) => service)` : `${own} = identity(${value})`,
        ...(methods && !plain.has(name)
          ? [`${own}_methods = Effect.map(${value}, (service) => ({ ...service }))`]
          : []),
        ...layers.map((layer) => `${own}_${layer} = identity(${value}.${layer})`)
      ]
    })
  ].join("\n")
}

beforeAll(async () => {
  folder = freshFolder()
  await run(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "scripts/tsconfig.package.json"], root)
  const [{ filename }] = JSON.parse(
    await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder], root)
  ) as [{ filename: string }]
  await run("tar", ["-xzf", filename], folder)
  // As npm would lay it out. What it depends on is linked from here: another download and another compilation would prove nothing.
  const modules = join(folder, "node_modules")
  mkdirSync(modules)
  cpSync(join(folder, "package"), join(modules, "tollgate"), { recursive: true })
  for (const name of [
    ...Object.keys(dependencies),
    ...Object.keys(peerDependencies),
    "@types/node",
    "@types/better-sqlite3"
  ]) {
    if (name.includes("/")) mkdirSync(join(modules, name.split("/")[0]!), { recursive: true })
    symlinkSync(join(root, "node_modules", name), join(modules, name))
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", private: true }))
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        strict: true,
        exactOptionalPropertyTypes: true,
        target: "ES2022",
        lib: ["ES2023", "DOM"],
        module: "NodeNext",
        types: ["node"],
        declaration: true,
        skipLibCheck: false
      },
      files: [...hosts, "names.ts"]
    })
  )
  for (const name of hosts) copyFileSync(join(root, "test", "hosts", name), join(folder, name))
  writeFileSync(join(folder, "names.ts"), await names())
  mkdirSync(join(folder, "data"))
}, compilation)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the package", () => {
  it(
    "type-checks in its hosts under strict, and names every type that they hand on",
    async () => {
      expect(await run(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", "."], folder)).toBe("")
    },
    compilation
  )

  it("keeps a host's books without any HTTP, beside the host's own tables", async () => {
    expect(JSON.parse(await run(process.execPath, ["ledger.js"], folder))).toEqual({
      refused: "6 of 400 USD",
      balances: ["6", "4"],
      findings: [],
      foreign: []
    })
  })

  it("meters a host's own function, and refuses it to who cannot pay", async () => {
    expect(printed(await run(process.execPath, ["meter.js"], folder))).toEqual({
      words: 3,
      charged: "300000000",
      balance: "200000000",
      refused: "200000000 of 300000000",
      findings: []
    })
  })

  it("answers decisions and takes media jobs as functions, each refusal by its tag, money as Nano", async () => {
    expect(printed(await run(process.execPath, ["capabilities.js"], folder))).toEqual({
      poor: { available: "0", required: "300000000" },
      decided: { answers: ["about"], charged: "882", balance: "999999118" },
      jobs: [
        { quote: "100000000", status: "IN_QUEUE" },
        { available: "899999118", required: "1200000000" },
        { field: "duration" }
      ],
      findings: []
    })
  })

  it("asks models as functions, by messages and responses, whole and streamed", async () => {
    const words = { type: "text", text: "two words" }
    expect(printed(await run(process.execPath, ["models.js"], folder))).toMatchObject({
      poor: { _tag: "InsufficientCredits" },
      texts: [[words], [{ type: "message", content: [{ type: "output_text", text: "two words" }] }]],
      types: [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop"
      ],
      // Two tokens at 150 nano-USD, and two at 600.
      receipts: ["1500", "1500", "1500"],
      wrong: { field: "background" },
      findings: []
    })
  })

  it("keeps programs without HTTP under sixty lines", () => {
    for (const name of ["meter.ts", "ledger.ts", "capabilities.ts", "models.ts"]) {
      expect(readFileSync(join(root, "test", "hosts", name), "utf8").split("\n").length - 1).toBeLessThan(60)
    }
  })

  it("mounts beneath a host's own routes, and is spoken to by the typed client", async () => {
    expect(printed(await run(process.execPath, ["mounted.js"], folder))).toEqual({
      hello: "hello from the host",
      credits: "5000000000",
      refused: "ClientIdNotFound",
      chat: "hello there"
    })
  })

  it("keeps to itself beneath a host's HttpApi, and the host to itself", async () => {
    const ours = { status: 404, cors: "*", body: { error: "no such route", code: "not_found" } }
    expect(JSON.parse((await run(process.execPath, ["api.js"], folder)).trim().split("\n").at(-1)!)).toEqual({
      host: {
        models: { status: 200, cors: null, body: "the host's models" },
        aid: { status: 200, cors: null, body: "not beneath the prefix" },
        without: 404,
        unknown: { status: 404, cors: null, body: "" },
        // As the platform's router is set by default; the service's is exact.
        case: 200,
        preflight: 404,
        docs: "a page",
        paths: ["/v1/models", "/aid"]
      },
      service: {
        models: { status: 401, cors: "*", body: { error: "missing Authorization header" } },
        // To the documents.
        bare: { status: 200, cors: "*", body: "a page" },
        unknown: ours,
        method: { status: 405, cors: "*", body: { error: "Method Not Allowed" } },
        case: 404,
        badgeless: { status: 200, cors: "*", body: { status: "ok" } },
        preflight: 204,
        docs: "a page",
        servers: [{ url: "/ai" }],
        leaks: [],
        credits: "5000000000"
      }
    })
  })

  it("holds the page of the console, compressed", () => {
    const files = readdirSync(join(folder, "package", "dist", "console"), { recursive: true }) as ReadonlyArray<string>
    expect(files).toEqual(expect.arrayContaining(["index.html"]))
    expect(files.filter((name) => /^assets.*\.js\.br$/.test(name)).length).toBeGreaterThan(1)
  })

  it("says with which versions it is installed", () => {
    const guide = readFileSync(join(root, "src", "app", "guides", "embed.md"), "utf8")
    const line = /^npm install \.\/tollgate-\S+\.tgz .*$/m.exec(guide)?.[0] ?? ""
    const wanted = Object.entries(peerDependencies).filter(([name]) => name !== "fast-check")
    expect(line.split(" ").slice(3).toSorted()).toEqual(wanted.map(([name, range]) => `${name}@${range}`).toSorted())
  })

  it("imports without doing anything, entry by entry, and says what each is", async () => {
    expect(entries.length).toBeGreaterThanOrEqual(25)
    const script = `for (const name of ${JSON.stringify(entries)}) {
      console.log(name, Object.keys(await import(name)).length > 0 ? "values" : "types")
    }`
    const expected = entries.map((name) => `${name} ${name === "tollgate/contracts" ? "types" : "values"}\n`)
    // It ends by itself: nothing was started.
    expect(await run(process.execPath, ["--input-type=module", "-e", script], folder)).toBe(expected.join(""))
  })
})

/**
 * `npm run binary [-- --arch x64|arm64 ... --reproducible --out FOLDER]` builds one self-contained executable, `out/tollgate-linux-<arch>`. Builds
 * for several architectures share all parts that do not depend on the architecture. Two `--reproducible` builds of the same commit are identical byte
 * for byte. They omit V8's compiled code, which differs from run to run, so each start has to compile. Node.js and the prebuilt SQLite driver
 * come from the npm registry (`packages.ts`).
 */
import { build, transform } from "esbuild"
import type { BuildOptions, Plugin } from "esbuild"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { basename, join, relative } from "node:path"
import { parseArgs } from "node:util"
import { inject } from "postject"
import { packed } from "./binary/Pack.ts"
import { common, direct, root, withoutPool, withoutSchemas } from "./bundle.ts"
import { buildConsole } from "./console.ts"
import { copyGuides } from "./guides.ts"
import { cache, driverVersion, fetched, nodeVersion } from "./packages.ts"

/** The same flags as in `npm start`. */
const flags = ["--max-semi-space-size=32"]

/** The recorded service's configuration. It uses every module. */
const recorded = {
  identity: { google: { issuer: "http://127.0.0.1:1", audiences: ["record"] } },
  clients: [{ client_id: "record", name: "Record" }],
  upstreams: { record: { base_url: "http://127.0.0.1:1", api_key: "record" } },
  decisions: { upstream: "record", model: "record" },
  tools: { search: [{ id: "record", vendor: "tavily", upstream: "record", usd_per_query: "0.005" }] },
  models: [
    {
      id: "record",
      context_length: 8_000,
      max_output_tokens: 1_000,
      price: { prompt_usd_per_million: "1", completion_usd_per_million: "1" },
      upstreams: [{ upstream: "record" }]
    }
  ]
}

const architectures = ["x64", "arm64"] as const
type Architecture = (typeof architectures)[number]

const { values: given } = parseArgs({
  options: {
    arch: { type: "string", multiple: true, default: [process.arch] },
    out: { type: "string", default: join(root, "out") },
    reproducible: { type: "boolean", default: false }
  }
})

const parseArchitectures = (): ReadonlyArray<Architecture> =>
  given.arch.map((asked) => {
    const arch = architectures.find((name) => name === asked)
    if (arch === undefined) throw new Error(`--arch ${asked}: must be one of ${architectures.join(", ")}`)
    return arch
  })

const say = (line: string) => console.log(line)

/** Replaces the files and packages that the service expects next to it with parts of the executable. */
const parts = (driver: string): Plugin => ({
  name: "parts of the executable",
  setup: ({ onResolve }) => {
    const here = (file: string) => ({ path: join(root, "scripts", "binary", file) })
    onResolve({ filter: /^better-sqlite3$/ }, () => here("Driver.ts"))
    onResolve({ filter: /^driver:/ }, ({ path }) => ({
      path: join(driver, "lib", `${path.slice("driver:".length)}.js`)
    }))
    onResolve({ filter: /^\.\/ThreadCode\.ts$/ }, ({ importer }) =>
      here(importer.includes("postgres") ? "LeaseThreadCode.ts" : "ThreadCode.ts")
    )
    onResolve({ filter: /^\.\/BodyThreadCode\.ts$/ }, () => here("ThreadCode.ts"))
    onResolve({ filter: /^\.\/CatalogueFile\.ts$/ }, () => here("CatalogueFile.ts"))
    onResolve({ filter: /^\.\/PageFiles\.ts$/ }, () => here("PageFiles.ts"))
    onResolve({ filter: /^\.\/GuideFiles\.ts$/ }, () => here("GuideFiles.ts"))
  }
})

/** Reads all files in a folder except the loader. Returns each file's relative path and bytes. */
const filesOf = (folder: string) =>
  (readdirSync(folder, { recursive: true }) as ReadonlyArray<string>)
    .filter((name) => name !== "loader.js" && statSync(join(folder, name)).isFile())
    .map((name) => [name, readFileSync(join(folder, name))] as const)

/**
 * Escapes a non-ASCII character. esbuild leaves such characters in regular expressions and comments, and one of them makes V8 use two bytes per
 * character for the entire file.
 */
const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`

/** Writes the parts that all architectures share: the loader, the bundle's files and the console's page. */
const bundle = async (assets: string, driver: string): Promise<void> => {
  copyFileSync(join(root, "src", "upstream", "catalogue", "catalogue.json"), join(assets, "catalogue.json"))
  await buildConsole(join(assets, "console"))
  await copyGuides(join(assets, "guides"))
  const options = {
    ...common,
    target: "node24",
    outdir: assets,
    plugins: [parts(driver), ...common.plugins]
  } as const satisfies BuildOptions
  // The loader is the executable's entry point. It loads everything else from the assets.
  await build({
    ...options,
    entryPoints: { loader: "scripts/binary/main.ts" },
    format: "cjs",
    minifyWhitespace: true
  })
  // Build the bundle's files as ES modules first, because only then does esbuild remove unused code and split off lazily loaded code.
  const files = {
    ...options,
    write: false,
    format: "esm",
    sourcemap: "inline",
    legalComments: "none"
  } as const
  const bundles = [
    await build({
      ...files,
      entryPoints: { main: "src/main.ts" },
      splitting: true,
      chunkNames: "[name]-[hash]",
      plugins: [direct, ...files.plugins]
    }),
    await build({
      ...files,
      entryPoints: { WriterThread: "src/books/ledger/write/WriterThread.ts" },
      plugins: [withoutSchemas, ...files.plugins]
    }),
    await build({
      ...files,
      entryPoints: { LeaseThread: "src/storage/postgres/LeaseThread.ts" },
      plugins: [direct, ...files.plugins]
    }),
    await build({
      ...files,
      entryPoints: { BodyThread: "src/calls/BodyThread.ts" },
      plugins: [direct, withoutPool, ...files.plugins]
    })
  ]
  for (const { path, text } of bundles.flatMap(({ outputFiles }) => outputFiles)) {
    const name = basename(path)
    // Names are not minified. Otherwise, `keepNames` would set each function's name at runtime, which costs time and memory.
    const { code, map } = await transform(text.replace(/^#!.*/, "").replace(/[^\0-\x7F]/g, escaped), {
      format: "cjs",
      platform: "node",
      target: "node24",
      sourcefile: name,
      sourcemap: "external",
      sourcesContent: false,
      minifyWhitespace: true,
      minifySyntax: true,
      legalComments: "none",
      // Scripts cannot use `import`.
      supported: { "dynamic-import": false }
    })
    writeFileSync(join(assets, name), `(function(module,exports,require){${code}\n})`)
    writeFileSync(join(assets, `${name}.map`), map)
  }
}

const ownFiles = (driver: string, arch: Architecture) => {
  const addon = readFileSync(join(driver, "prebuilds", `linux-${arch}.node`))
  const hash = createHash("sha256").update(addon).digest("hex").slice(0, 16)
  return [
    ["better_sqlite3.node", addon],
    ["better_sqlite3.hash", Buffer.from(hash)]
  ] as const
}

const nodeOf = (arch: Architecture): string => join(fetched(`node-linux-${arch}@${nodeVersion}`), "bin", "node")

/** Starts a service and records V8's compiled code for the files, which is valid only for this architecture. */
const record = (work: string, assets: string, files: Parameters<typeof packed>[1]) => {
  say("recording")
  const caches = join(work, "caches")
  mkdirSync(caches)
  const configuration = join(work, "config.json")
  const service = join(work, "service")
  writeFileSync(service, packed(0, files))
  writeFileSync(configuration, JSON.stringify(recorded))
  const script = join(root, "scripts", "binary", "record.cjs")
  const args = [...flags, script, join(assets, "loader.js"), caches, service, join(work, "data"), configuration]
  execFileSync(nodeOf(process.arch as Architecture), args, { stdio: ["ignore", "ignore", "inherit"], timeout: 60_000 })
  return filesOf(caches)
}

/** Builds Node's startup blob for the executable: the loader and the flags. */
const blobOf = (work: string, assets: string): Buffer => {
  // The paths are relative, because the blob contains the loader's path but must not depend on the folder.
  const settings = {
    main: relative(work, join(assets, "loader.js")),
    output: "blob",
    disableExperimentalSEAWarning: true,
    execArgv: flags
  }
  writeFileSync(join(work, "sea.json"), JSON.stringify(settings))
  const node = nodeOf(process.arch as Architecture)
  execFileSync(node, ["--experimental-sea-config", "sea.json"], { cwd: work, stdio: "ignore" })
  return readFileSync(join(work, "blob"))
}

const write = async (work: string, arch: Architecture, blob: Buffer, files: Parameters<typeof packed>[1]) => {
  say(`injecting it into the ${arch} executable`)
  const fresh = join(work, `tollgate-${arch}`)
  copyFileSync(nodeOf(arch), fresh)
  // Symbols make up a sixth of the file. They remain if `strip` does not support the architecture.
  try {
    execFileSync("strip", [fresh], { stdio: "ignore" })
  } catch {
    say("strip cannot read the executable, so its symbols remain")
  }
  await inject(fresh, "NODE_SEA_BLOB", blob, { sentinelFuse: "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2" })
  appendFileSync(fresh, packed(statSync(fresh).size, files))
  mkdirSync(given.out, { recursive: true })
  const target = join(given.out, `tollgate-linux-${arch}`)
  renameSync(fresh, target)
  say(`${target}: ${(statSync(target).size / 1e6).toFixed(1)} MB`)
}

const chosen = parseArchitectures()
const driver = fetched(`better-sqlite3@${driverVersion}`)
const work = join(cache, `work-${process.pid}`)
const assets = join(work, "assets")
mkdirSync(assets, { recursive: true })
say("bundling")
await bundle(assets, driver)
const blob = blobOf(work, assets)
for (const arch of chosen) {
  const files = [...ownFiles(driver, arch), ...filesOf(assets)]
  const caches = arch === process.arch && !given.reproducible ? record(work, assets, files) : []
  await write(work, arch, blob, [...files, ...caches])
}
rmSync(work, { recursive: true, force: true })

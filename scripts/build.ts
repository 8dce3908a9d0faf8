/**
 * Builds `dist/`: the main process and its threads, the console's page, the catalogue and the guides. Each bundle contains all dependencies except
 * the native SQLite driver. A bundle needs half the startup time and half the memory of separate modules. The build does not check types, because
 * `npm start` builds first and must be fast.
 */
import { build } from "esbuild"
import type { BuildOptions } from "esbuild"
import { chmod, copyFile, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { common, direct, root, withoutPool, withoutSchemas } from "./bundle.ts"
import { buildConsole, described } from "./console.ts"
import { copyGuides } from "./guides.ts"

// Build into a temporary folder and then move it into place. A process that starts in the meantime finds either the old or the new build.
const target = await mkdtemp(join(root, "dist."))
// `mkdtemp` creates a private folder, but another user might run the service from this build.
await chmod(target, 0o755)

const options = {
  ...common,
  outdir: target,
  target: "node20",
  format: "esm",
  external: ["better-sqlite3"],
  sourcemap: "linked",
  // CommonJS packages need `require`, but an ES module does not define it.
  banner: {
    js: 'import { createRequire as createRequire_ } from "node:module"; const require = createRequire_(import.meta.url);'
  }
} as const satisfies BuildOptions

// The parts that the process loads on demand (the sandbox, the documents, the command line) are separate files.
await build({
  ...options,
  entryPoints: { main: "src/main.ts" },
  splitting: true,
  chunkNames: "[name]-[hash]",
  plugins: [direct, ...options.plugins]
})
// The thread gets its own copy of shared code, because a shared file would contain code that the thread does not use.
await build({
  ...options,
  entryPoints: { WriterThread: "src/books/ledger/write/WriterThread.ts" },
  plugins: [withoutSchemas, ...options.plugins]
})
await build({
  ...options,
  entryPoints: { LeaseThread: "src/storage/postgres/LeaseThread.ts" },
  plugins: [direct, ...options.plugins]
})
await build({
  ...options,
  entryPoints: { BodyThread: "src/calls/BodyThread.ts" },
  plugins: [direct, withoutPool, ...options.plugins]
})

console.log(described(await buildConsole(join(target, "console"))))

await copyFile(join(root, "src", "upstream", "catalogue", "catalogue.json"), join(target, "catalogue.json"))
await copyGuides(join(target, "guides"))

// V8 keeps source text in memory, and a single two-byte character doubles the size of the entire text. esbuild escapes such characters in
// code. The loop below replaces the remaining characters, in the comments of dependencies.
for (const file of (await readdir(target)).filter((name) => name.endsWith(".js"))) {
  const path = join(target, file)
  const lines = (await readFile(path, "utf8")).split("\n")
  const comment = /^\s*(?:\/\/|[/(]?\*)|\s\/\/ /
  const plain = lines.map((line) => (comment.test(line) ? line.replace(/[^\0-\x7F]/gu, "?") : line))
  await writeFile(path, plain.join("\n"))
}

const old = `${target}.old`
for (let tries = 1; ; tries++) {
  await rename(join(root, "dist"), old).catch(() => undefined)
  const moved = await rename(target, join(root, "dist")).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      // Another build has moved its result into place first, so retry.
      if (tries === 10 || !["ENOTEMPTY", "EEXIST"].includes(error.code ?? "")) throw error
      return false
    }
  )
  await rm(old, { recursive: true, force: true })
  if (moved) break
}

/**
 * Writes `dist/`: the process and its threads, each bundled with everything it needs but the SQLite driver, which is
 * native; and the page of the console. A bundle starts in half the time and half the memory of the same modules loaded one by one. Types are
 * checked by `npm run check`; here only speed counts, since `npm start` builds first.
 */
import { build } from "esbuild"
import type { BuildOptions } from "esbuild"
import { chmod, copyFile, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { common, direct, root, withoutPool, withoutSchemas } from "./bundle.ts"
import { buildConsole, described } from "./console.ts"
import { copyGuides } from "./guides.ts"

// Written beside and moved into place whole: a process that starts meanwhile finds the old one or the new one.
const target = await mkdtemp(join(root, "dist."))
// For whoever may run it, who need not be who builds it.
await chmod(target, 0o755)

const options = {
  ...common,
  outdir: target,
  target: "node20",
  format: "esm",
  external: ["better-sqlite3"],
  sourcemap: "linked",
  // CommonJS packages in an ES module ask for these.
  banner: {
    js: 'import { createRequire as createRequire_ } from "node:module"; const require = createRequire_(import.meta.url);'
  }
} as const satisfies BuildOptions

// What the process loads only where it is wanted (the sandbox, the documents, the command line) is a file of its own.
await build({
  ...options,
  entryPoints: { main: "src/main.ts" },
  splitting: true,
  chunkNames: "[name]-[hash]",
  plugins: [direct, ...options.plugins]
})
// The thread has a copy of what both need: a file that they shared would hold more than it uses.
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
  entryPoints: { AnswerThread: "src/calls/engine/AnswerThread.ts" },
  plugins: [direct, withoutPool, ...options.plugins]
})

console.log(described(await buildConsole(join(target, "console"))))

await copyFile(join(root, "src", "upstream", "catalogue", "catalogue.json"), join(target, "catalogue.json"))
await copyGuides(join(target, "guides"))

// V8 keeps the text of what it runs, in twice the memory if a single character of it needs two bytes. esbuild writes those of the
// program as escapes; what is left stands in comments of dependencies, and anything else is left as it is.
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
      // Another build was faster in between.
      if (tries === 10 || !["ENOTEMPTY", "EEXIST"].includes(error.code ?? "")) throw error
      return false
    }
  )
  await rm(old, { recursive: true, force: true })
  if (moved) break
}

/**
 * Writes `dist/`: each source file as the JavaScript that Node runs, one to one, with source maps. Types are checked by
 * `npm run check`; here only speed counts, since `npm start` builds first.
 */
import { transform } from "esbuild"
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"

const root = join(import.meta.dirname, "..")
const source = join(root, "src")
// Written beside and moved into place whole: a process that starts meanwhile finds the old one or the new one.
const target = await mkdtemp(join(root, "dist."))
const files = (await readdir(source, { recursive: true })).filter((file) => file.endsWith(".ts"))

await Promise.all(
  files.map(async (file) => {
    const { code, map } = await transform(await readFile(join(source, file), "utf8"), {
      loader: "ts",
      format: "esm",
      target: "node20",
      sourcemap: "external",
      sourcefile: join("..", "src", file)
    })
    const written = join(target, file.replace(/\.ts$/, ".js"))
    await mkdir(dirname(written), { recursive: true })
    // Relative imports name the `.ts` file in the source and the `.js` file beside it here.
    const relinked = code.replace(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, "$1$2.js$1")
    await writeFile(written, `${relinked}//# sourceMappingURL=${file.split("/").at(-1)!.replace(/\.ts$/, ".js.map")}\n`)
    await writeFile(`${written}.map`, map)
  })
)

await rename(join(root, "dist"), `${target}.old`).catch(() => undefined)
await rename(target, join(root, "dist"))
await rm(`${target}.old`, { recursive: true, force: true })

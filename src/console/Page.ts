/**
 * The console's built files, with their content types and precompressed encodings. Any other path outside `assets/` returns `index.html`, because the
 * page does its own routing. The `<base>` of `index.html` is set to the console's path, which is not known at build time.
 */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { promisify } from "node:util"
import { brotliCompress, gzip } from "node:zlib"
import type { Encoding } from "../http/transport/Encodings.ts"
import * as PageFiles from "./PageFiles.ts"

export interface PageFile {
  readonly type: string
  readonly bytes: Buffer
  readonly encoding: Encoding | undefined
  /** Differs between encodings. */
  readonly etag: string
  /** Whether the file name contains a hash of the content. */
  readonly immutable: boolean
}

export interface Page {
  /**
   * Returns the file in the first available encoding, or uncompressed if none is available. `path` is relative to the page's root. An unknown path
   * returns `index.html`. An unknown path below `assets/`, such as an earlier build's asset, returns `undefined`.
   */
  readonly find: (path: string, encodings: ReadonlyArray<Encoding>) => Promise<PageFile | undefined>
}

const index = "index.html"
/** The folder of files whose names contain a content hash. */
const hashed = "assets/"
const endings = { br: ".br", gzip: ".gz" } as const

const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  json: "application/json",
  map: "application/json",
  webmanifest: "application/manifest+json",
  svg: "image/svg+xml",
  png: "image/png",
  webp: "image/webp",
  ico: "image/x-icon",
  woff2: "font/woff2",
  txt: "text/plain; charset=utf-8"
}

const typeOf = (path: string): string => types[path.slice(path.lastIndexOf(".") + 1)] ?? "application/octet-stream"

const etagOf = (bytes: Buffer): string => `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`

/** Loads the page for a console served at the path `base`, such as `/console/`. Returns `undefined` if the page was not built. */
export const load = (base: string): Effect.Effect<Page | undefined> =>
  Effect.promise(async () => {
    const names = new Set(await PageFiles.list())
    if (!names.has(index)) return undefined
    const entry = await entryOf(base)
    const etags = new Map<string, string>()

    const fileOf = async (path: string, encodings: ReadonlyArray<Encoding>): Promise<PageFile> => {
      const encoding = encodings.find((one) => names.has(path + endings[one]))
      const name = encoding === undefined ? path : path + endings[encoding]
      const bytes = await PageFiles.read(name)
      const etag = etags.get(name) ?? etagOf(bytes)
      etags.set(name, etag)
      return { type: typeOf(path), bytes, encoding, etag, immutable: path.startsWith(hashed) }
    }

    return {
      find: async (path, encodings) => {
        const isFile = names.has(path) && path !== index && !path.endsWith(endings.br) && !path.endsWith(endings.gzip)
        if (isFile && path.includes(".")) return fileOf(path, encodings)
        return path.startsWith(hashed) ? undefined : entry(encodings)
      }
    }
  })

/** Inserts the console's path into `index.html` and compresses it once. Returns a function that selects the encoding. */
const entryOf = async (base: string) => {
  const text = (await PageFiles.read(index)).toString("utf8").replace(/<base href="[^"]*"/, `<base href="${base}"`)
  const plain = Buffer.from(text)
  const [br, gz] = await Promise.all([promisify(brotliCompress)(plain), promisify(gzip)(plain)])
  const file = (bytes: Buffer, encoding: Encoding | undefined): PageFile => {
    return { type: typeOf(index), bytes, encoding, etag: etagOf(bytes), immutable: false }
  }
  const encoded = { br: file(br, "br"), gzip: file(gz, "gzip") }
  const identity = file(plain, undefined)
  return ([first]: ReadonlyArray<Encoding>): PageFile => (first === undefined ? identity : encoded[first])
}

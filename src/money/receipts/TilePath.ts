/**
 * The path of a tile (C2SP tlog-tiles): `<level>/<index>[.p/<width>]`. The index is split into groups of three digits, all but the last prefixed with
 * `x`.
 */
import { tileWidth } from "../../books/log/Tree.ts"
import type { TileKey } from "../../books/log/Tree.ts"

export interface AskedTile extends TileKey {
  readonly width: number
}

const levelsMax = 63

/** Parses a tile's path. Returns `undefined` for any other spelling, because each tile has exactly one path. */
export const tileOfPath = (path: string): AskedTile | undefined => {
  const [, level = "", groups = "", width] =
    /^(0|[1-9]\d?)\/((?:x\d{3}\/)*\d{3})(?:\.p\/([1-9]\d{0,2}))?$/.exec(path) ?? []
  const n = Number(groups.replace(/[x/]/g, ""))
  const asked = { level: Number(level), n, width: width === undefined ? tileWidth : Number(width) }
  const isPartial = width === undefined || asked.width < tileWidth
  const isShortest = Number.isSafeInteger(n) && groups === indexPath(n)
  return groups !== "" && asked.level <= levelsMax && isPartial && isShortest ? asked : undefined
}

const indexPath = (n: number): string => {
  const groups = String(n)
    .padStart(3 * Math.max(1, Math.ceil(String(n).length / 3)), "0")
    .match(/\d{3}/g)!
  return groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join("/")
}

/** Returns a tile's path. A full tile's path contains no width. */
export const pathOfTile = ({ level, n, width }: AskedTile): string =>
  `${level}/${indexPath(n)}${width < tileWidth ? `.p/${width}` : ""}`

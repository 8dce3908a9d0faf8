/** Appends files to another file: the files, their positions as JSON, the length of the JSON, and a mark. */

export interface Place {
  readonly position: number
  readonly length: number
}

const mark = "tollgate"

/** The trailer of a packed file: the length of the JSON in eight bytes, and the mark. */
const endBytes = 8 + mark.length

/** The bytes to append to a file of this size. */
export const packed = (size: number, files: ReadonlyArray<readonly [name: string, bytes: Buffer]>): Buffer => {
  let position = size
  const places = files.map(([name, { length }]) => {
    const place: Place = { position, length }
    position += length
    return [name, place] as const
  })
  const index = Buffer.from(JSON.stringify(places))
  const end = Buffer.alloc(endBytes, mark, "latin1")
  end.writeBigUInt64LE(BigInt(index.length))
  end.write(mark, 8, "latin1")
  return Buffer.concat([...files.map(([, bytes]) => bytes), index, end])
}

/** The positions of the files in a packed file of this size. */
export const placesIn = (size: number, read: (place: Place) => Buffer): ReadonlyMap<string, Place> => {
  const end = read({ position: size - endBytes, length: endBytes })
  if (end.toString("latin1", 8) !== mark)
    throw new Error("the end of the executable is missing: it was cut, or stripped")
  const length = Number(end.readBigUInt64LE())
  return new Map(JSON.parse(read({ position: size - endBytes - length, length }).toString()) as Array<[string, Place]>)
}

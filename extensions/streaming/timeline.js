// While a streamed clip plays, a line moves through the drawings, and the transcript of that moment stands above them.
for (const clip of document.querySelectorAll(".timelines")) {
  const audio = clip.querySelector("audio");
  if (!audio) continue;
  const figures = [...clip.querySelectorAll("figure.timeline")].map((figure) => ({
    line: figure.querySelector(".cursor"),
    caption: figure.querySelector(".caption"),
    events: JSON.parse(figure.dataset.events),
    x: (t) => Number(figure.dataset.left) + (t / Number(figure.dataset.end)) * (figure.dataset.right - figure.dataset.left),
    end: Number(figure.dataset.end),
  }));
  let ended = 0;
  const draw = () => {
    const now = audio.ended ? audio.duration + (performance.now() - ended) / 1000 : audio.currentTime;
    for (const { line, caption, events, x, end } of figures) {
      for (const side of ["x1", "x2"]) line.setAttribute(side, x(Math.min(now, end)));
      const [, final, open] = events.findLast(([time]) => time <= now) ?? [0, "", ""];
      const changing = document.createElement("i");
      changing.textContent = open;
      caption.replaceChildren(final + " ", changing);
    }
    // words come after the audio has ended too
    if (!audio.paused || (audio.ended && now < Math.max(...figures.map((figure) => figure.end)))) requestAnimationFrame(draw);
  };
  audio.addEventListener("ended", () => { ended = performance.now(); draw(); });
  audio.addEventListener("play", draw);
  audio.addEventListener("seeked", draw);
}

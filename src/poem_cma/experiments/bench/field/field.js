"use strict";
document.querySelectorAll(".strip").forEach((strip) => {
  const told = strip.querySelector(".told");
  const tell = (event) => {
    const dot = event.target.closest("i");
    if (!dot) return;
    strip.querySelectorAll("i.on").forEach((other) => other.classList.remove("on"));
    dot.classList.add("on");
    const who = dot.closest(".row").querySelector(".who").firstChild.textContent.trim();
    told.textContent = who + " on " + dot.title;
  };
  strip.addEventListener("click", tell);
  strip.addEventListener("mouseover", tell);
});
